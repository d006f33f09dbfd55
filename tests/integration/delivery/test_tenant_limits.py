"""Quotas of registrations and endpoints, and how limits are read and set."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client as HttpClient
from django.test.utils import CaptureQueriesContext

from eventhub.base import limits
from tests.integration.access_world import ApiCaller, caller_with, refused
from tests.integration.registrations.test_registrations import announced, made, rows, world

pytestmark = pytest.mark.django_db
ORDER = {"streams": ["orders"]}
URL = "https://hooks.example/"


def operator() -> ApiCaller:
    """Return a caller that is logged in as an operator."""
    browser = HttpClient()
    browser.force_login(User.objects.create_superuser("ops"))
    return ApiCaller(http=browser)


def quotas(caller: ApiCaller, path: str = "/v1/limits", **values: int | None) -> Any:
    answer = caller.put(path, values)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_an_operator_sets_quotas_and_a_tenant_reads_them() -> None:
    manager, them = world(), caller_with("listen:*", client_name="them")
    staff = operator()
    found = quotas(staff, events_per_s=500, registrations=20)
    assert (found["name"], found["client"]) == (None, None)
    assert found["zone"]["events_per_s"] == {"quota": 500, "limit": 500, "used": 0}
    assert found["zone"]["registrations"] == {"quota": 20, "limit": 20, "used": 0}
    assert found["zone"]["endpoints"] == {"quota": None, "limit": None, "used": 0}
    quotas(staff, "/v1/limits?client=them", endpoints=3)
    [(type, event)] = announced(1)
    assert (type, event["client"], event["endpoints"]) == ("client.quotas_set", "them", 3)
    made(them, {**ORDER, "callback": URL})
    own = them.get("/v1/limits").json()
    assert (own["name"], own["zone"]) == ("them", None)
    hub_max = limits.REGISTRATIONS_PER_CLIENT_MAX
    assert own["client"]["registrations"] == {"quota": None, "limit": hub_max, "used": 1}
    assert own["client"]["endpoints"] == {"quota": 3, "limit": 3, "used": 1}
    assert own["client"]["events_per_s"] == {"quota": None, "limit": None, "used": None}
    seen = manager.get("/v1/limits?client=them").json()
    assert seen["client"] == own["client"]
    assert seen["zone"]["registrations"]["used"] == 1
    refused(them.get("/v1/limits?client=tester"), 403, "forbidden")
    refused(manager.put("/v1/limits", {"endpoints": 9}), 403, "forbidden")


def test_quotas_that_are_not_given_are_removed() -> None:
    world()
    staff = operator()
    quotas(staff, registrations=5, endpoints=6)
    before = announced(1)
    assert quotas(staff, registrations=5, endpoints=6)["zone"]["endpoints"]["quota"] == 6
    assert announced(1) == before
    found = quotas(staff, endpoints=7, registrations=None)
    assert found["zone"]["registrations"]["quota"] is None
    assert found["zone"]["endpoints"]["quota"] == 7
    [(type, event)] = announced(1)
    assert (type, event["registrations"], event["endpoints"]) == ("zone.quotas_set", None, 7)


def test_a_client_has_at_most_its_quota() -> None:
    manager, them = world(), caller_with("listen:*", client_name="them")
    quotas(operator(), "/v1/limits?client=them", registrations=2, endpoints=1)
    made(them, [ORDER, ORDER])
    problem = refused(them.post("/v1/registrations", ORDER), 409, "limit_reached")
    assert problem["limit"] == 2
    assert "quota of the client is 2 registrations" in problem["detail"]
    made(manager, ORDER)
    assert them.post("/v1/endpoints", {"url": URL}).status_code == 201
    refused(them.post("/v1/endpoints", {"url": URL}), 409, "limit_reached")


def test_the_clients_of_a_zone_share_its_quota() -> None:
    manager, them = world(), caller_with("listen:*", client_name="them")
    staff = operator()
    quotas(staff, registrations=3, endpoints=2)
    made(them, [ORDER, ORDER])
    made(manager, ORDER)
    for caller in (them, manager):
        problem = refused(caller.post("/v1/registrations", ORDER), 409, "limit_reached")
        assert "quota of the zone is 3 registrations" in problem["detail"]
    for caller in (them, manager):
        assert caller.post("/v1/endpoints", {"url": URL}).status_code == 201
    refused(them.post("/v1/endpoints", {"url": URL}), 409, "limit_reached")
    quotas(staff, registrations=4)
    made(them, ORDER)
    assert them.post("/v1/endpoints", {"url": URL}).status_code == 201


def test_a_quota_below_the_present_use_refuses_more_and_ends_nothing() -> None:
    them = world()
    found = made(them, [ORDER] * 3)["items"]
    quotas(operator(), registrations=1)
    refused(them.post("/v1/registrations", ORDER), 409, "limit_reached")
    assert them.delete(f"/v1/registrations/{found[0]['id']}").status_code == 204
    assert them.get("/v1/limits").json()["zone"]["registrations"]["used"] == 2


def test_a_quota_is_locked_once_however_many_clients_its_zone_has() -> None:
    them = world()
    for n in range(3):
        caller_with("listen:*", client_name=f"client-{n}")
    staff = operator()
    quotas(staff, "/v1/limits?client=tester", endpoints=9)
    quotas(staff, endpoints=9)
    with CaptureQueriesContext(connection) as queries:
        assert them.post("/v1/endpoints", {"url": URL}).status_code == 201
    [query] = [one["sql"] for one in queries if 'FROM "quotas"' in one["sql"]]
    assert len(rows(query.replace("%", "%%"))) == 2


def test_a_changed_quota_keeps_its_row() -> None:
    """A request that waits for the lock of the row would not see another one."""
    world()
    staff = operator()
    quotas(staff, registrations=5, endpoints=6)
    [before] = rows("SELECT id FROM quotas WHERE kind = 'registrations'")
    quotas(staff, registrations=7)
    assert rows("SELECT id, kind, value FROM quotas") == [(*before, "registrations", 7)]
