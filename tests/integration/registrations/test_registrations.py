"""Registrations through the management API: created singly or in lists, changed, ended, listed."""

from typing import Any

import orjson
import pytest
from django.db import connection

from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.base.errors import MissingField
from eventhub.eventlog import streams
from registrations.scope import owner
from tests.integration.access_world import EVERYTHING, ApiCaller, caller_with, refused, zone

pytestmark = pytest.mark.django_db
ORDER = {"streams": ["orders"], "domain": "shop", "type": "order.placed"}


def world(*names: str) -> ApiCaller:
    """Return a manager's caller_with in a zone with the streams `orders` and `returns`."""
    manager = caller_with(*EVERYTHING)
    for name in names or ("orders", "returns"):
        manager.put(f"/v1/streams/{name}")
    return manager


def made(caller: ApiCaller, body: Any) -> Any:
    answer = caller.post("/v1/registrations", body)
    assert answer.status_code == 201, answer.content
    return answer.json()


def rows(query: str, *args: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, args)
        return list(cursor.fetchall())


def announced(count: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the last events of `system` as type and attributes."""
    row = streams.get_stream(raw_connection(), zone("default").pk, "system")
    found = [
        streams.read_event(raw_connection(), row, row.sequence - back).event
        for back in reversed(range(count))
    ]
    return [(event.type, event.attributes) for event in found]


def stored() -> list[Any]:
    tables = (
        "registration_owners",
        "registrations",
        "registration_versions",
        "endpoints",
        "barriers",
    )
    found: list[Any] = [rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables]
    return [*found, rows("SELECT sequence FROM heads WHERE stream_id = 1")]


@pytest.mark.req("SUN-02")
def test_a_registration_is_returned_as_it_was_created() -> None:
    manager = world()
    body = {**ORDER, "streams": ["returns", "orders"], "attributes": {"state": "on", "n": 1.5}}
    found = made(manager, body)
    assert {name: found[name] for name in body} == body
    assert (found["client"], found["version"]) == ("tester", 1)
    assert (found["endpoint"], found["callback"], found["pair_count"]) == (None, None, 2)
    assert {name: place["sequence"] for name, place in found["from"].items()} == {
        "returns": 0,
        "orders": 0,
    }
    assert manager.get(f"/v1/registrations/{found['id']}").json() == found
    assert manager.get("/v1/registrations").json() == {"items": [found], "next": None}
    [(type, event)] = announced(1)
    barrier = rows("SELECT max(id) FROM barriers")[0][0]
    assert type == "registration.created"
    assert event.pop("by")["client"] == "tester"
    assert event == {"zone": "default", "client": "tester", "registration": found["id"],
                    "version": 1, "barrier": barrier, "streams": ["returns", "orders"],
                    "suspended": False, "group": None, "session": None,
                    "session_group": None, "key": None}  # fmt: skip


def test_a_list_is_created_at_one_barrier_with_one_event_each() -> None:
    manager = world()
    items = [{**ORDER, "attributes": {"n": number}} for number in range(50)]
    head = rows("SELECT sequence FROM heads WHERE stream_id = 1")[0][0]
    found = made(manager, items)["items"]
    assert [item["attributes"]["n"] for item in found] == list(range(50))
    assert [item["id"] for item in found] == sorted(item["id"] for item in found)
    assert rows("SELECT sequence FROM heads WHERE stream_id = 1") == [(head + 50,)]
    events = announced(50)
    assert [attributes["registration"] for _, attributes in events] == [
        item["id"] for item in found
    ]
    assert len({attributes["barrier"] for _, attributes in events}) == 1
    assert rows("SELECT registrations FROM registration_owners") == [(50,)]


@pytest.mark.parametrize(
    ("bad", "code", "field"),
    [
        ({"streams": ["nowhere"]}, "404 unknown_stream", "streams.0"),
        ({"streams": ["orders", "a b"]}, "400 invalid_name", "streams.1"),
        ({"streams": []}, "400 invalid_field", "streams"),
        ({"streams": "orders"}, "400 invalid_field", "streams"),
        ({"streams": ["orders"] * 65}, "400 field_too_long", "streams"),
        ({}, "400 missing_field", "streams"),
        ({**ORDER, "attributes": {"a": [1]}}, "400 invalid_field", "attributes.a"),
        ({**ORDER, "body": {}}, "400 body_not_filterable", "body"),
        ({**ORDER, "colour": 1}, "400 unknown_field", "colour"),
        ({**ORDER, "domain": ""}, "400 invalid_field", "domain"),
        ({**ORDER, "endpoint": 999}, "404 unknown_endpoint", "endpoint"),
        ({**ORDER, "endpoint": "1"}, "400 invalid_field", "endpoint"),
        ({**ORDER, "endpoint": 1 << 63}, "400 invalid_field", "endpoint"),
        ({**ORDER, "callback": "ftp://example.com"}, "400 invalid_field", "callback"),
        ({**ORDER, "callback": "http://127.0.0.1/"}, "400 refused_address", "callback"),
        ({**ORDER, "callback": "http://a.example", "endpoint": 1}, "400 invalid_field", "callback"),
        ({**ORDER, "client": "other"}, "400 invalid_field", "client"),
    ],
)  # fmt: skip
def test_one_bad_registration_refuses_the_whole_list(
    bad: dict[str, Any], code: str, field: str
) -> None:
    manager = world()
    made(manager, ORDER)
    before = stored()
    status, name = code.split()
    problem = refused(manager.post("/v1/registrations", [ORDER, bad]), int(status), name)
    assert problem["position"] == {"index": 1, "field": field}
    if field != "client":
        problem = refused(manager.post("/v1/registrations", bad), int(status), name)
        assert problem["position"] == {"field": field}
    assert stored() == before


def test_the_list_of_a_request_is_bounded() -> None:
    manager = world()
    refused(manager.post("/v1/registrations", []), 400, "invalid_field")
    refused(manager.post("/v1/registrations", "x"), 400, "invalid_field")
    problem = refused(
        manager.post("/v1/registrations", [{}] * 1_001), 413, "too_many_registrations"
    )
    assert problem["items_max"] == limits.REGISTRATIONS_PER_REQUEST_MAX


def test_the_registrations_of_a_client_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REGISTRATIONS_PER_CLIENT_MAX", 3)
    manager = world()
    made(manager, [ORDER, ORDER])
    refused(manager.post("/v1/registrations", [ORDER, ORDER]), 409, "limit_reached")
    last = made(manager, ORDER)
    refused(manager.post("/v1/registrations", ORDER), 409, "limit_reached")
    assert manager.delete(f"/v1/registrations/{last['id']}").status_code == 204
    made(manager, ORDER)
    assert rows("SELECT registrations FROM registration_owners") == [(3,)]


@pytest.mark.req("OIF-05")
def test_a_change_adds_a_version_and_repeating_it_changes_nothing() -> None:
    manager = world()
    first = made(manager, {**ORDER, "attributes": {"a": 1}})
    path = f"/v1/registrations/{first['id']}"
    changed = manager.patch(path, {"type": None, "streams": ["returns"], "attributes": {"b": 2}})
    assert changed.status_code == 200, changed.content
    second = changed.json()
    assert (second["version"], second["type"], second["domain"]) == (2, None, "shop")
    assert (second["attributes"], second["streams"]) == ({"b": 2}, ["returns"])
    assert list(second["from"]) == ["returns"]
    assert second["created_at"] == first["created_at"]
    [(type, event)] = announced(1)
    assert (type, event["version"]) == ("registration.changed", 2)
    assert event["streams"] == ["orders", "returns"]
    bounds = rows(
        "SELECT number, from_barrier, until_barrier FROM registration_versions ORDER BY 1"
    )
    assert bounds == [(1, bounds[0][1], event["barrier"]), (2, event["barrier"], None)]
    assert len(rows("SELECT unnest(streams) FROM barriers WHERE id = %s", event["barrier"])) == 2
    before = stored()
    for same in ({}, {"attributes": {"b": 2}}, {"streams": ["returns", "returns"]}, {"type": None}):
        assert manager.patch(path, same).json() == second
    assert stored() == before
    assert manager.get(path).json() == second


def test_a_number_of_another_type_is_another_filter() -> None:
    manager = world()
    found = made(manager, {**ORDER, "attributes": {"a": 1}})
    path = f"/v1/registrations/{found['id']}"
    changed = manager.patch(path, {"attributes": {"a": True}}).json()
    assert (changed["version"], changed["attributes"]) == (2, {"a": True})


@pytest.mark.req("OIF-05")
def test_an_ended_registration_is_not_found_and_its_version_ends() -> None:
    manager = world()
    found = made(manager, ORDER)
    path = f"/v1/registrations/{found['id']}"
    assert manager.delete(path).status_code == 204
    for answer in (manager.get(path), manager.delete(path), manager.patch(path, {})):
        problem = refused(answer, 404, "unknown_registration")
        assert problem["position"] == {"field": "registration"}
    [(type, event)] = announced(1)
    assert (type, event["version"]) == ("registration.deleted", 1)
    assert rows("SELECT until_barrier FROM registration_versions") == [(event["barrier"],)]
    assert manager.get("/v1/registrations").json()["items"] == []


@pytest.mark.req("OIF-05")
def test_another_clients_registration_is_not_found() -> None:
    manager = world()
    theirs = made(caller_with("listen:*", client_name="them"), ORDER)
    mine = caller_with("listen:*", client_name="me")
    path = f"/v1/registrations/{theirs['id']}"
    for answer in (mine.get(path), mine.patch(path, {"type": None}), mine.delete(path)):
        refused(answer, 404, "unknown_registration")
    assert mine.get("/v1/registrations").json()["items"] == []
    refused(mine.get("/v1/registrations?client=them"), 403, "forbidden")
    refused(mine.post("/v1/registrations", {**ORDER, "client": "them"}), 403, "forbidden")
    assert manager.get(path).json() == theirs
    assert manager.get("/v1/registrations?client=them").json()["items"] == [theirs]
    assert manager.patch(path, {"type": None}).json()["client"] == "them"
    assert manager.delete(path).status_code == 204
    far = caller_with(*EVERYTHING, zone_name="far", client_name="them")
    refused(far.get(path), 404, "unknown_registration")


def test_registering_needs_listen_and_system_needs_manage() -> None:
    world()
    listener = caller_with("listen:orders", client_name="me")
    made(listener, ORDER)
    for streams_ in (["returns"], ["orders", "returns"], ["nowhere"], ["system"]):
        problem = refused(
            listener.post("/v1/registrations", {"streams": streams_}), 403, "forbidden"
        )
        assert problem["position"] == {"field": f"streams.{len(streams_) - 1}"}
    refused(
        caller_with("listen:*").post("/v1/registrations", {"streams": ["system"]}), 403, "forbidden"
    )
    found = made(caller_with("manage:system"), {"streams": ["system"], "type": "key.revoked"})
    assert found["from"]["system"]["sequence"] > 0


def test_lists_are_filtered_and_paged() -> None:
    manager = world()
    endpoint = manager.post("/v1/endpoints", {"url": "https://a.example/"}).json()["id"]
    items = made(manager, [ORDER, {"streams": ["returns"]}, {**ORDER, "endpoint": endpoint}])[
        "items"
    ]
    ids = [item["id"] for item in items]

    def listed(query: str) -> list[int]:
        answer = manager.get(f"/v1/registrations?{query}")
        assert answer.status_code == 200, answer.content
        return [item["id"] for item in answer.json()["items"]]

    assert listed("stream=orders") == [ids[0], ids[2]]
    assert listed("stream=nowhere") == []
    assert listed(f"endpoint={endpoint}") == [ids[2]]
    assert listed("client=tester&stream=returns") == [ids[1]]
    page = manager.get("/v1/registrations?limit=2").json()
    assert page["next"] == str(ids[1])
    assert listed(f"after={page['next']}") == [ids[2]]
    for bad in ("after=x", "endpoint=x", "limit=0"):
        refused(manager.get(f"/v1/registrations?{bad}"), 400, "invalid_field")


def test_a_callback_creates_one_endpoint_and_shows_its_secret_once() -> None:
    manager = world()
    definition = {**ORDER, "callback": "https://a.example/hook"}
    first, second = made(manager, [definition, definition])["items"]
    assert first["endpoint"] == second["endpoint"]
    assert first["callback"] == definition["callback"]
    assert first["secret"] == second["secret"]
    third = made(manager, definition)
    assert third["endpoint"] == first["endpoint"]
    assert "secret" not in third
    assert "secret" not in manager.get(f"/v1/registrations/{first['id']}").json()
    assert rows("SELECT count(*) FROM endpoints") == [(1,)]
    other = made(caller_with("listen:*", client_name="other"), definition)
    assert other["endpoint"] != first["endpoint"]


def test_a_filter_is_stored_as_it_was_written() -> None:
    manager = world()
    attributes = {"z": "\0", "a.b": None, "big": (1 << 63) - 1, "f": 1.0, "t": True, "é": "ü"}
    found = made(manager, {**ORDER, "attributes": attributes})
    assert orjson.dumps(found["attributes"]) == orjson.dumps(attributes)


def test_an_operator_names_the_client() -> None:
    manager = world()
    made(manager, ORDER)
    actor = Actor(zone("default").pk, "default", None)
    with pytest.raises(MissingField):
        owner(actor=actor, name=None)
    assert owner(actor=actor, name="tester").name == "tester"
