"""Clients, keys and connection tokens over the API: who may, isolation, escalation."""

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from eventhub.access.models import ApiKey
from eventhub.access.tokens import TokenClaims, read_token
from eventhub.base.clock import SystemClock
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode
from tests.integration.access_world import (
    EVERYTHING,
    ApiCaller,
    caller_with,
    client,
    key,
    public_id,
    refused,
    zone,
)

pytestmark = pytest.mark.django_db
EMIT = [{"action": "emit", "streams": "orders"}]


def test_a_client_and_its_key_are_made_and_the_key_is_shown_once() -> None:
    manager = caller_with(*EVERYTHING)
    assert manager.post("/v1/clients", {"name": "shop"}).status_code == 201
    made = manager.post("/v1/clients/shop/keys", {"grants": EMIT, "label": "till 1"})
    assert made.status_code == 201
    issued = made.json()
    assert issued["key"].startswith(f"ehk_{issued['public_id']}_")
    assert made["Cache-Control"] == "no-store"
    listed = manager.get("/v1/clients/shop/keys").json()["items"]
    assert [item["public_id"] for item in listed] == [issued["public_id"]]
    assert "key" not in listed[0] and "digest" not in listed[0]
    assert listed[0]["grants"] == EMIT
    row = ApiKey.objects.get(public_id=issued["public_id"])
    assert bytes(row.digest) == hashlib.sha256(issued["key"].encode()).digest()


def test_a_revoked_key_is_refused_and_revoking_again_changes_nothing() -> None:
    manager, text = caller_with(*EVERYTHING), key("manage:*")
    assert ApiCaller(text).get("/v1/clients").status_code == 200
    for _ in range(2):
        assert manager.delete(f"/v1/keys/{public_id(text)}").status_code == 204
    response = ApiCaller(text).get("/v1/clients")
    refused(response, 401, "invalid_credentials")
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_an_expired_key_is_refused() -> None:
    text = key("manage:*", expires_at=timezone.now() + timedelta(seconds=60))
    assert ApiCaller(text).get("/v1/clients").status_code == 200
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(ApiCaller(text).get("/v1/clients"), 401, "invalid_credentials")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer x",
        "Basic eDp5",
        "Bearer ehk_abcdefghijkm_" + "x" * 43,
        "Bearer ehk_\0" + "x" * 50,
        "Bearer " + "é" * 100,
        "Bearer " + "a" * 100_000,
    ],
)
def test_wrong_credentials_are_401(header: str) -> None:
    response = ApiCaller().get("/v1/clients", headers={"Authorization": header})
    refused(response, 401, "invalid_credentials")


def test_no_credentials_are_401_and_say_what_to_send() -> None:
    response = ApiCaller().get("/v1/clients")
    refused(response, 401, "unauthenticated")
    assert response["WWW-Authenticate"] == 'Bearer realm="eventhub"'


@pytest.mark.parametrize("grants", [(), ("emit:*", "listen:*"), ("manage:orders.*",)])
def test_managing_the_zone_needs_manage_on_everything(grants: tuple[str, ...]) -> None:
    someone = caller_with(*grants)
    for method, path, body in [
        ("GET", "/v1/clients", None),
        ("POST", "/v1/clients", {"name": "x"}),
        ("GET", "/v1/clients/tester", None),
        ("GET", "/v1/clients/tester/keys", None),
        ("POST", "/v1/clients/tester/keys", {"grants": []}),
        ("GET", f"/v1/keys/{public_id(someone.key)}", None),
        ("PATCH", f"/v1/keys/{public_id(someone.key)}", {"grants": []}),
        ("DELETE", f"/v1/keys/{public_id(someone.key)}", None),
        ("PUT", "/v1/channels/disk", {"mask": 1}),
        ("GET", "/v1/zones", None),
        ("POST", "/v1/zones", {"name": "mine"}),
    ]:
        refused(someone.call(method, path, body), 403, "forbidden")


def test_a_manager_of_one_zone_finds_nothing_in_another() -> None:
    ours, theirs = (
        caller_with(*EVERYTHING),
        key(*EVERYTHING, zone_name="other", client_name="their"),
    )
    their_key = f"/v1/keys/{public_id(theirs)}"
    for method, path, body in [
        ("GET", "/v1/clients/their", None),
        ("GET", "/v1/clients/their/keys", None),
        ("POST", "/v1/clients/their/keys", {"grants": []}),
        ("GET", their_key, None),
        ("PATCH", their_key, {"label": "ours now"}),
        ("DELETE", their_key, None),
        ("GET", "/v1/clients?zone=other", None),
        ("POST", "/v1/clients?zone=other", {"name": "spy"}),
        ("PUT", "/v1/channels/disk?zone=other", {"mask": 1}),
    ]:
        refused(ours.call(method, path, body), 404, "not_found")
    assert ApiCaller(theirs).get(their_key).json()["label"] == ""
    names = [item["name"] for item in ours.get("/v1/clients").json()["items"]]
    assert names == ["tester"]


def test_zones_may_use_the_same_names() -> None:
    for name in ("default", "other"):
        manager = caller_with(*EVERYTHING, zone_name=name)
        assert manager.post("/v1/clients", {"name": "twin"}).status_code == 201
        assert manager.put("/v1/channels/disk", {"mask": 1}).status_code == 201


@pytest.mark.parametrize(
    ("own", "requested"),
    [
        (["manage:*"], {"action": "emit", "streams": "orders"}),
        (["manage:*", "emit:orders.*"], {"action": "emit", "streams": "*"}),
        (["manage:*", "emit:orders.*"], {"action": "emit", "streams": "orders*"}),
        (["manage:*", "emit:orders.*"], {"action": "listen", "streams": "orders.new"}),
        (["manage:*", "emit:a*b"], {"action": "emit", "streams": "a*"}),
        (["manage:*", "emit:a*b"], {"action": "emit", "streams": "*b"}),
        (["manage:*", "emit:a", "emit:b"], {"action": "emit", "streams": "?"}),
    ],
)
def test_a_key_cannot_give_more_than_it_has(own: list[str], requested: dict[str, str]) -> None:
    manager = caller_with(*own)
    mine = f"/v1/keys/{public_id(manager.key)}"
    before = ApiKey.objects.count()
    for response in (
        manager.post("/v1/clients/tester/keys", {"grants": [requested]}),
        manager.patch(mine, {"grants": [{"action": "manage", "streams": "*"}, requested]}),
        manager.post("/v1/connection-tokens", {"grants": [requested]}),
    ):
        assert response.status_code in (400, 403), response.content
        if "?" not in requested["streams"]:
            problem = refused(response, 403, "wider_grant")
            assert problem["position"]["field"].startswith("grants.")
    assert ApiKey.objects.count() == before
    assert len(manager.get(mine).json()["grants"]) == len(own)


def test_a_key_gives_what_lies_within_its_own() -> None:
    manager = caller_with("manage:*", "emit:orders.*")
    grants = [{"action": "emit", "streams": "orders.*.new"}, {"action": "manage", "streams": "x*"}]
    made = manager.post("/v1/clients/tester/keys", {"grants": grants})
    assert made.status_code == 201
    assert made.json()["grants"] == grants


def test_a_key_cannot_outlive_the_key_that_makes_it() -> None:
    end = timezone.now() + timedelta(hours=1)
    manager = caller_with(*EVERYTHING, expires_at=end)
    later = (end + timedelta(seconds=1)).isoformat()
    response = manager.post("/v1/clients/tester/keys", {"grants": [], "expires_at": later})
    assert refused(response, 403, "wider_grant")["position"] == {"field": "expires_at"}
    made = manager.post("/v1/clients/tester/keys", {"grants": []}).json()
    assert ApiKey.objects.get(public_id=made["public_id"]).expires_at == end


def test_a_revoked_key_cannot_be_changed_back_to_life() -> None:
    manager, text = caller_with(*EVERYTHING), key("emit:a")
    path = f"/v1/keys/{public_id(text)}"
    manager.delete(path)
    refused(manager.patch(path, {"label": "again"}), 404, "not_found")
    assert manager.get(path).json()["revoked_at"]


def test_a_token_names_its_key_and_its_narrower_grants() -> None:
    text = key("listen:orders.*")
    minted = ApiCaller(text).post(
        "/v1/connection-tokens",
        {"grants": [{"action": "listen", "streams": "orders.eu"}], "lifetime_s": 30},
    )
    assert minted.status_code == 201
    claims = read_token(settings.SECRET_KEY, minted.json()["token"], SystemClock())
    assert isinstance(claims, TokenClaims)
    assert claims.public_id == public_id(text)
    assert claims.grants is not None
    assert [grant.pattern for grant in claims.grants] == ["orders.eu"]
    refused(ApiCaller(minted.json()["token"]).get("/v1/channels"), 401, "invalid_credentials")


@pytest.mark.parametrize("lifetime_s", [0, -1, 86_401, 1.5, "60", True, None, 1 << 64])
def test_a_token_lives_for_a_whole_number_of_seconds(lifetime_s: object) -> None:
    response = caller_with("listen:*").post("/v1/connection-tokens", {"lifetime_s": lifetime_s})
    assert response.status_code == 400


def test_every_change_is_announced_in_its_transaction_and_without_secrets() -> None:
    zone("other")
    manager = caller_with(*EVERYTHING, zone_name="other")
    manager.post("/v1/clients", {"name": "shop"})
    made = manager.post("/v1/clients/shop/keys", {"grants": EMIT}).json()
    path = f"/v1/keys/{made['public_id']}"
    manager.patch(path, {"label": "till"})
    manager.patch(path, {"label": "till"})
    manager.delete(path)
    manager.put("/v1/channels/disk", {"mask": 4})
    manager.put("/v1/channels/disk", {"mask": 4})
    events = system_events()
    assert [event["type"] for event in events] == [
        "zone.created",
        "client.created",
        "key.created",
        "client.created",
        "key.created",
        "key.changed",
        "key.revoked",
        "channel.defined",
    ]
    assert {event["attributes"]["zone"] for event in events} == {"other"}
    assert events[-2]["attributes"]["key"] == made["public_id"]
    assert events[-1]["attributes"]["mask"] == "4"
    assert made["key"].split("_", 2)[2] not in json.dumps(events)


def system_events() -> list[dict[str, object]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT payload FROM events e JOIN segments s ON s.id = e.segment_id"
            " WHERE s.stream_id = 1 AND e.partition_id = s.partition_id ORDER BY sequence"
        )
        return [json.loads(event_json(decode(bytes(row[0])))) for row in cursor.fetchall()]


def test_a_commit_tells_the_other_processes(
    django_capture_on_commit_callbacks: Callable[
        [], AbstractContextManager[list[Callable[[], None]]]
    ],
) -> None:
    manager = caller_with(*EVERYTHING)
    with django_capture_on_commit_callbacks() as callbacks:
        manager.put("/v1/channels/disk", {"mask": 1})
        manager.put("/v1/channels/disk", {"mask": 1})
    assert len(callbacks) == 1
    callbacks[0]()


def test_a_refused_change_announces_nothing() -> None:
    manager = caller_with(*EVERYTHING)
    before = len(system_events())
    manager.put("/v1/channels/disk", {"mask": 3})
    manager.post("/v1/clients", {"name": "tester"})
    manager.post("/v1/clients/tester/keys", {"grants": EMIT, "expires_at": "2020-01-01T00:00:00Z"})
    manager.put("/v1/streams/system")
    assert len(system_events()) == before


def test_pages_hold_every_client_once() -> None:
    manager = caller_with(*EVERYTHING, client_name="c0")
    for number in range(1, 8):
        client("default", f"c{number}")
    names, after = [], ""
    while True:
        page = manager.get(f"/v1/clients?limit=3{after}").json()
        names += [item["name"] for item in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert names == [f"c{number}" for number in range(8)]
