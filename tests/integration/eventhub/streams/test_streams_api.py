"""Streams, segments and single events through the management API."""

import hashlib
import json
from typing import Any

import pytest
from django.db import connection, transaction

from eventhub.api.announcements import raw_connection
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog import streams
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from tests.integration.access_world import EVERYTHING, caller_with, refused, zone

pytestmark = pytest.mark.django_db


def emit(name: str, count: int, zone_name: str = "default") -> list[bytes]:
    """Append events as the emit caller_with does; their stored bytes."""
    row = streams.get_stream(raw_connection(), zone(zone_name).pk, name)
    payloads = [
        encode(Event("shop", "order.new", {"n": number, "big": 1 << 63}, mask=5))
        for number in range(count)
    ]
    with transaction.atomic():
        append_in(raw_connection(), [Draft(row.id, 5, payload) for payload in payloads])
    return payloads


def test_a_stream_is_created_once_and_the_same_again_changes_nothing() -> None:
    manager = caller_with(*EVERYTHING)
    made = manager.put("/v1/streams/orders", {"segment_events_max": 100})
    assert made.status_code == 201
    stream = made.json()
    assert (stream["first"], stream["last"], stream["segment_events_max"]) == (1, 0, 100)
    before = system_head()
    for body in ({"segment_events_max": 100}, {}, None):
        again = manager.put("/v1/streams/orders", body)
        assert (again.status_code, again.json()) == (200, stream)
    assert system_head() == before
    changed = manager.put("/v1/streams/orders", {"segment_bytes_max": 1000}).json()
    assert (changed["segment_events_max"], changed["segment_bytes_max"]) == (100, 1000)
    assert system_head() == before + 1


def system_head() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sequence FROM heads WHERE stream_id = 1")
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize(
    "body",
    [
        {"segment_events_max": 0},
        {"segment_events_max": -1},
        {"segment_events_max": 1 << 63},
        {"segment_events_max": "100"},
        {"segment_events_max": 1.0},
        {"segment_events_max": True},
        {"segment_events_max": None},
        {"segment_bytes_max": 1 << 40},
        {"segment_bytes_max": []},
    ],
)
def test_a_policy_is_whole_numbers_in_bounds(body: dict[str, Any]) -> None:
    problem = refused(
        caller_with(*EVERYTHING).put("/v1/streams/orders", body), 400, "invalid_field"
    )
    assert problem["position"]["field"] in body


@pytest.mark.req("EMC-04")
def test_a_stored_event_never_changes() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders")
    [payload] = emit("orders", 1)
    path = "/v1/streams/orders/events/1"
    before = manager.get(path)
    assert before.status_code == 200
    for method in ("PUT", "PATCH", "DELETE", "POST", "UPDATE"):
        response = manager.call(method, path, {"type": "order.cancelled"})
        refused(response, 405, "method_not_allowed")
        assert response["Allow"] == "GET, HEAD"
    after = manager.get(path)
    assert after.content == before.content
    assert after["ETag"] == before["ETag"] == f'"{hashlib.sha256(payload).hexdigest()}"'


def test_an_event_is_returned_with_its_fields_of_the_log() -> None:
    manager = caller_with(*EVERYTHING)
    segment = manager.put("/v1/streams/orders").json()["segment"]["uuid"]
    emit("orders", 2)
    event = manager.get("/v1/streams/orders/events/2").json()
    assert (event["stream"], event["segment"], event["sequence"]) == ("orders", segment, 2)
    assert event["appended_at"].endswith("Z")
    assert (event["domain"], event["type"], event["mask"]) == ("shop", "order.new", "5")
    assert event["attributes"] == {"n": 1, "big": 1 << 63}


@pytest.mark.parametrize("sequence", ["0", "2", "-1", "x", "1.0", "9" * 18, "9" * 30, "%00", "१"])
def test_a_number_that_was_not_given_is_404(sequence: str) -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders")
    emit("orders", 1)
    refused(manager.get(f"/v1/streams/orders/events/{sequence}"), 404, "unknown_event")


def test_the_current_segment_changes_exactly_at_the_roll() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders", {"segment_events_max": 100})
    path = "/v1/streams/orders/segments/current"
    first = manager.get(path).json()
    assert (first["first"], first["sequence"], first["state"]) == (1, 0, "open")
    emit("orders", 99)
    assert manager.get(path).json()["uuid"] == first["uuid"]
    emit("orders", 1)
    rolled = manager.get(path).json()
    assert rolled["uuid"] != first["uuid"]
    assert (rolled["first"], rolled["sequence"]) == (101, 100)
    emit("orders", 150)
    current = manager.get(path).json()
    assert (current["first"], current["sequence"]) == (201, 250)
    segments = manager.get("/v1/streams/orders/segments").json()["items"]
    shown = [(item["first"], item["last"], item["state"], item["tier"]) for item in segments]
    assert shown == [
        (1, 100, "sealed", "live"),
        (101, 200, "sealed", "live"),
        (201, 250, "open", "live"),
    ]
    assert [item["sealed_at"] is None for item in segments] == [False, False, True]
    assert all(item["bytes"] > 0 for item in segments)
    assert segments[-1]["uuid"] == current["uuid"]
    pages, after = [], ""
    while after is not None:
        page = manager.get(f"/v1/streams/orders/segments?limit=1&after={after}").json()
        pages, after = pages + page["items"], page["next"]
    assert pages == segments
    for sequence, index in ((1, 0), (100, 0), (101, 1), (200, 1), (201, 2), (250, 2)):
        event = manager.get(f"/v1/streams/orders/events/{sequence}").json()
        assert event["segment"] == segments[index]["uuid"]


def test_other_methods_on_the_emit_path_are_405() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders")
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        response = manager.call(method, "/v1/streams/orders/events", {})
        refused(response, 405, "method_not_allowed")
        assert response["Allow"] == "POST"


def test_grants_decide_which_streams_a_key_sees() -> None:
    manager = caller_with(*EVERYTHING)
    for name in ("orders.eu", "orders.us", "bills"):
        manager.put(f"/v1/streams/{name}")
    emit("orders.eu", 1)
    reader, writer = caller_with("listen:orders.*"), caller_with("emit:orders.eu")
    names = [item["name"] for item in reader.get("/v1/streams").json()["items"]]
    assert names == ["orders.eu", "orders.us"]
    assert reader.get("/v1/streams/orders.eu/segments/current").status_code == 200
    assert reader.get("/v1/streams/orders.eu/events/1").status_code == 200
    assert writer.get("/v1/streams/orders.eu").status_code == 200
    refused(writer.get("/v1/streams/orders.eu/events/1"), 403, "forbidden")
    for path in ("", "/segments", "/segments/current", "/events/1"):
        refused(reader.get(f"/v1/streams/bills{path}"), 403, "forbidden")
        refused(reader.get(f"/v1/streams/system{path}"), 403, "forbidden")
    problem = refused(reader.put("/v1/streams/orders.eu"), 403, "forbidden")
    assert "manage:orders.eu" in problem["detail"]
    some = caller_with("manage:orders.*")
    assert some.put("/v1/streams/orders.asia").status_code == 201
    refused(some.put("/v1/streams/bills"), 403, "forbidden")


def test_a_stream_of_another_zone_does_not_exist() -> None:
    ours, theirs = caller_with(*EVERYTHING), caller_with(*EVERYTHING, zone_name="other")
    theirs.put("/v1/streams/secret")
    emit("secret", 1, "other")
    for path in ("", "/segments", "/segments/current", "/events/1"):
        refused(ours.get(f"/v1/streams/secret{path}"), 404, "unknown_stream")
        refused(ours.get(f"/v1/streams/secret{path}?zone=other"), 404, "not_found")
    refused(ours.put("/v1/streams/secret?zone=other"), 404, "not_found")
    assert "secret" not in [item["name"] for item in ours.get("/v1/streams").json()["items"]]
    assert ours.put("/v1/streams/secret").status_code == 201
    assert ours.get("/v1/streams/secret").json()["last"] == 0


def test_of_system_a_manager_sees_the_events_of_the_own_zone() -> None:
    ours, theirs = caller_with(*EVERYTHING), caller_with(*EVERYTHING, zone_name="other")
    theirs.put("/v1/streams/secret")
    head = ours.get("/v1/streams/system").json()["last"]
    path = f"/v1/streams/system/events/{head}"
    event = theirs.get(path).json()
    assert event["type"] == "stream.created"
    assert event["attributes"]["zone"] == "other"
    assert event["attributes"]["stream"] == "secret"
    refused(ours.get(path), 404, "unknown_event")
    refused(ours.put("/v1/streams/system", {"segment_events_max": 1}), 403, "forbidden")


def test_a_dropped_event_is_410_with_the_remaining_sequences() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders", {"segment_events_max": 2})
    emit("orders", 3)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE segments SET tier = 'dropped' WHERE last = 2")
    problem = refused(manager.get("/v1/streams/orders/events/1"), 410, "gap")
    left = manager.get("/v1/streams/orders/segments/current").json()["uuid"]
    assert problem["first_available"] == {"segment": left, "sequence": 3}
    assert problem["resume"] == {"segment": left, "sequence": 2}
    assert manager.get("/v1/streams/orders").json()["first"] == 3


def test_streams_come_in_pages_also_where_grants_hide_most() -> None:
    manager = caller_with(*EVERYTHING)
    for number in range(12):
        manager.put(f"/v1/streams/{'ab'[number % 2]}{number:02}")
    reader = caller_with("listen:b*")
    names, after = [], ""
    while after is not None:
        page = reader.get(f"/v1/streams?limit=2&after={after}").json()
        names += [item["name"] for item in page["items"]]
        after = page["next"]
    assert names == [f"b{number:02}" for number in range(1, 12, 2)]


def test_events_of_json_and_bytes_bodies_are_shown() -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/streams/orders")
    row = streams.get_stream(raw_connection(), zone("default").pk, "orders")
    bodies = [(b'{"a":1}', "application/json"), (b"\xff\0", "application/octet-stream")]
    with transaction.atomic():
        for body, kind in bodies:
            event = Event("d", "t", {}, body=body, content_type=kind)
            append_in(raw_connection(), [Draft(row.id, event.mask, encode(event))])
    assert manager.get("/v1/streams/orders/events/1").json()["body"] == {"a": 1}
    shown = manager.get("/v1/streams/orders/events/2").json()
    assert shown["body_base64"] == "/wA="
    assert json.dumps(shown)
