"""Policies of streams through the management API: what may be, what may change, what is shown."""

from typing import Any

import pytest
from django.db import connection

from eventhub.base import limits
from tests.integration.access_world import EVERYTHING, caller_with, refused
from tests.integration.eventhub.streams.test_streams_api import emit, system_head

pytestmark = pytest.mark.django_db

DEFAULTS = {
    "durability": "sync",
    "segment_events_max": limits.SEGMENT_EVENTS_DEFAULT,
    "segment_bytes_max": limits.SEGMENT_BYTES_DEFAULT,
    "segment_age_s_max": None,
    "keyed": False,
    "restate": False,
    "retain_events": None,
    "retain_bytes": None,
    "retain_age_s": None,
    "on_lag": "keep",
    "hold": None,
    "archive": False,
    "undeclared": "accept",
    "filterable_data": False,
}
EVERY_FIELD = {
    "durability": "async",
    "segment_events_max": 10,
    "segment_bytes_max": 20,
    "segment_age_s_max": 30,
    "keyed": True,
    "restate": True,
    "retain_events": 40,
    "retain_bytes": 50,
    "retain_age_s": 60,
    "on_lag": "drop",
    "hold": "case 17",
    "archive": True,
    "undeclared": "refuse",
    "filterable_data": True,
}


def policy_of(stream: dict[str, Any]) -> dict[str, Any]:
    return {name: stream[name] for name in DEFAULTS}


def test_a_stream_without_a_policy_has_the_defaults() -> None:
    assert policy_of(caller_with(*EVERYTHING).put("/v1/streams/orders").json()) == DEFAULTS


def test_every_field_of_a_policy_is_stored_and_returned() -> None:
    manager = caller_with(*EVERYTHING)
    made = manager.put("/v1/streams/orders", EVERY_FIELD)
    assert made.status_code == 201
    assert policy_of(made.json()) == EVERY_FIELD
    assert policy_of(manager.get("/v1/streams/orders").json()) == EVERY_FIELD
    listed = {item["name"]: item for item in manager.get("/v1/streams").json()["items"]}
    assert policy_of(listed["orders"]) == EVERY_FIELD
    event = manager.get(f"/v1/streams/system/events/{system_head()}").json()
    assert policy_of(event["attributes"]) == EVERY_FIELD


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, value in EVERY_FIELD.items() if name not in ("durability", "keyed")],
)
def test_omitted_fields_do_not_change(name: str, value: Any) -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders", {"keyed": True})
    changed = manager.put("/v1/streams/orders", {name: value})
    assert changed.status_code == 200
    assert policy_of(changed.json()) == {**DEFAULTS, "keyed": True, name: value}
    back = manager.put("/v1/streams/orders", {name: DEFAULTS[name]}).json()  # null removes a limit
    assert policy_of(back) == {**DEFAULTS, "keyed": True}


@pytest.mark.parametrize(
    ("before", "change", "code"),
    [
        ({}, {"durability": "async"}, "durability_fixed"),
        ({"durability": "async"}, {"durability": "sync"}, "durability_fixed"),
        ({}, {"durability": "transient"}, "durability_fixed"),
        ({"durability": "transient"}, {"durability": "sync"}, "durability_fixed"),
        ({}, {"keyed": True}, "keyed_fixed"),
        ({"keyed": True}, {"keyed": False}, "keyed_fixed"),
    ],
)
def test_immutable_fields_cannot_be_changed(
    before: dict[str, Any], change: dict[str, Any], code: str
) -> None:
    manager = caller_with(*EVERYTHING)
    made = manager.put("/v1/streams/orders", before).json()
    problem = refused(manager.put("/v1/streams/orders", change), 409, code)
    assert problem["position"] == {"field": next(iter(change))}
    assert manager.get("/v1/streams/orders").json() == made
    assert manager.put("/v1/streams/orders", before).status_code == 200  # the same again


@pytest.mark.parametrize(
    "change",
    [
        {"keyed": True},
        {"segment_events_max": 10},
        {"segment_bytes_max": 10},
        {"segment_age_s_max": 60},
        {"retain_age_s": 60},
        {"retain_events": limits.TRANSIENT_EVENTS_MAX + 1},
        {"retain_bytes": limits.TRANSIENT_BYTES_MAX + 1},
        {"on_lag": "drop"},
        {"hold": "case 17"},
        {"archive": True},
    ],
)
def test_a_transient_stream_has_no_storage_policy(change: dict[str, Any]) -> None:
    manager = caller_with(*EVERYTHING)
    body = {"durability": "transient", **change}
    problem = refused(manager.put("/v1/streams/cpu", body), 400, "invalid_field")
    assert problem["position"] == {"field": next(iter(change))}
    refused(manager.get("/v1/streams/cpu"), 404, "unknown_stream")
    made = manager.put("/v1/streams/cpu", {"durability": "transient", "retain_events": 100})
    assert made.status_code == 201
    problem = refused(manager.put("/v1/streams/cpu", {"archive": True}), 400, "invalid_field")
    assert "are not stored" in problem["detail"]


def test_restate_needs_a_keyed_stream() -> None:
    manager = caller_with(*EVERYTHING)
    problem = refused(manager.put("/v1/streams/apps", {"restate": True}), 400, "invalid_field")
    assert problem["position"] == {"field": "restate"}
    made = manager.put("/v1/streams/apps", {"restate": True, "keyed": True})
    assert made.status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {"durability": "disk"},
        {"durability": None},
        {"durability": 1},
        {"segment_age_s_max": 0},
        {"segment_age_s_max": limits.SEGMENT_AGE_S_MAX + 1},
        {"keyed": "true"},
        {"keyed": 1},
        {"keyed": None},
        {"restate": None},
        {"retain_events": 0},
        {"retain_events": limits.RETAIN_EVENTS_MAX + 1},
        {"retain_bytes": -1},
        {"retain_bytes": limits.RETAIN_BYTES_MAX + 1},
        {"retain_age_s": 1.5},
        {"retain_age_s": limits.RETAIN_AGE_S_MAX + 1},
        {"on_lag": "wait"},
        {"on_lag": ["keep"]},
        {"hold": ""},
        {"hold": 17},
        {"archive": 0},
        {"undeclared": "ignore"},
    ],
)
def test_a_policy_is_refused_whole(body: dict[str, Any]) -> None:
    manager = caller_with(*EVERYTHING)
    refusal = manager.put("/v1/streams/orders", {"retain_events": 5, **body})
    problem = refused(refusal, 400, "invalid_field")
    assert problem["position"]["field"] in body
    refused(manager.get("/v1/streams/orders"), 404, "unknown_stream")


def test_the_head_of_a_transient_stream_is_not_in_the_database() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/cpu", {"durability": "transient"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM heads h JOIN streams s ON s.id = h.stream_id"
                       " WHERE s.durability = 'transient'")  # fmt: skip
        assert cursor.fetchone() == (0,)
    assert manager.get("/v1/streams/cpu/segments").json()["items"] == []


def test_a_segment_has_the_time_and_the_reason_of_its_removal() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders", {"segment_events_max": 2})
    emit("orders", 5)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE segments SET tier = 'dropped', removed_at = now(),"
                       " removal_reason = 'count' WHERE last = 2")  # fmt: skip
        cursor.execute("UPDATE segments SET tier = 'archived', removed_at = now(),"
                       " removal_reason = 'age', archive_path = 'a/b' WHERE last = 4")  # fmt: skip
    segments = manager.get("/v1/streams/orders/segments").json()["items"]
    shown = [(item["tier"], item["archived"], item["removal_reason"]) for item in segments]
    assert shown == [("dropped", False, "count"), ("archived", True, "age"), ("live", False, None)]
    assert [item["removed_at"] is None for item in segments] == [False, False, True]
    assert manager.get("/v1/streams/orders").json()["first"] == 3
