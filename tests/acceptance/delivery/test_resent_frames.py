"""Frames that a reader lost are sent again on request (FOX-83)."""

import time
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.wire import PROTOBUF, Session, numbered, session
from tests.live import LiveHub, LiveZone


async def lossy(reader: Session, count: int, *lost: int) -> list[dict[str, Any]]:
    """Receive events, and lose some of them."""
    return [one for one in await reader.events(count) if one["sequence"] not in lost]


async def resent(reader: Session) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the events before the message that says how many there were, and that message."""
    found = []
    while (message := await reader.hear())["op"] != "resent":
        assert message["op"] == "event", message
        found.append(message)
    return found, message


@pytest.mark.req("FOX-83")
@pytest.mark.parametrize("subprotocol", ["eventhub.v1.json", PROTOBUF])
async def test_a_nak_lists_two_of_ten_frames_and_both_are_sent_again_in_order(
    hub: LiveHub, zone: LiveZone, subprotocol: str
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 10))
    async with session(hub, zone.admin, subprotocol=subprotocol) as reader:
        await reader.listen("orders", start="oldest")
        kept = await lossy(reader, 10, 4, 7)
        await reader.say("resend", listener="a", sequences=[7, 4])
        again, answer = await resent(reader)
        assert [one["sequence"] for one in again] == [4, 7]
        assert answer == {"op": "resent", "listener": "a", "events": 2, "missing": []}
        whole = sorted([*kept, *again], key=lambda one: one["sequence"])
        assert [one["sequence"] for one in whole] == list(range(1, 11))
        zone.emit("orders", numbered(11, 11))
        [new] = await reader.events(1)
        assert new["sequence"] == 11
        last = new["frame"].prev if "frame" in new else new["prev"]
        assert last == 10  # what was sent again does not count


async def test_a_range_has_the_events_that_match_and_proves_that_no_other_does(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    masks = (1, 2, 1, 1, 2, 2, 1)
    zone.emit("orders", [{**numbered(1, 1)[0], "mask": mask} for mask in masks])
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest", mask=1, signature=True)
        sent = await reader.events(4)
        await reader.say("resend", listener="a", **{"from": 2, "to": 7})
        again, answer = await resent(reader)
    assert [(one["prev"], one["sequence"]) for one in again] == [(1, 3), (3, 4), (4, 7)]
    assert [(one["event"], one["signature"]) for one in again] == [
        (one["event"], one["signature"]) for one in sent[1:]
    ]
    assert {one["liveness"] for one in again} == {"recovery"}
    assert answer["events"] == 3


async def test_registrations_count_as_they_were_at_the_events(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    [one, two] = zone.register(
        {"streams": ["orders"], "attributes": {"n": 1}}, {"streams": ["orders"]}
    )
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", registrations=[one["id"], two["id"]])
        zone.emit("orders", numbered(1, 2))
        assert [each["registrations"] for each in await reader.events(2)] == [
            [one["id"], two["id"]],
            [two["id"]],
        ]
        ended = hub.call("DELETE", f"/v1/registrations/{one['id']}", key=zone.admin)
        assert ended.status == 204
        zone.emit("orders", numbered(1, 1))
        assert [each["registrations"] for each in await reader.events(1)] == [[two["id"]]]
        await reader.say("resend", listener="a", **{"from": 1, "to": 3})
        again, _ = await resent(reader)
    assert [each["registrations"] for each in again] == [
        [one["id"], two["id"]],
        [two["id"]],
        [two["id"]],
    ]


async def test_events_that_are_no_longer_stored_are_named(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=2, retain_events=2)
    zone.emit("orders", numbered(1, 2))
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest")
        await reader.events(2)
        for number in (3, 5):
            zone.emit("orders", numbered(number, number + 1))
            await reader.events(2)
        await_dropped(zone)
        await reader.say("resend", listener="a", **{"from": 1, "to": 6})
        again, answer = await resent(reader)
    first = again[0]["sequence"]
    assert answer["missing"] == [{"first": 1, "last": first - 1}]
    assert [one["sequence"] for one in again] == list(range(first, 7))


def await_dropped(zone: LiveZone) -> None:
    until_s = time.monotonic() + 60
    path = "/v1/streams/orders"
    while zone.hub.call("GET", path, key=zone.admin).json["first"] == 1:
        assert time.monotonic() < until_s, "no segment was dropped"
        time.sleep(0.1)


async def test_a_transient_stream_resends_from_memory(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("ticks", durability="transient")
    async with session(hub, zone.admin) as reader:
        await reader.listen("ticks")
        zone.emit("ticks", numbered(1, 3))
        await reader.events(3)
        await reader.say("resend", listener="a", sequences=[2])
        again, answer = await resent(reader)
    assert ([one["sequence"] for one in again], answer["events"]) == ([2], 1)


async def test_only_what_was_reported_and_no_more_than_a_page_is_sent_again(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 2))
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest")
        await reader.events(2)
        most = limits.RESEND_SEQUENCES_MAX
        for fields, code, field in (
            ({"from": 1, "to": 3}, "invalid_field", "to"),
            ({"sequences": [1, 3]}, "invalid_field", "sequences"),
            ({"from": 2, "to": 1}, "invalid_field", "to"),
            ({"from": 1}, "missing_field", "to"),
            ({}, "missing_field", "to"),
            ({"from": 1, "to": 2, "sequences": [1]}, "invalid_field", "sequences"),
            ({"sequences": [1] * (most + 1)}, "field_too_long", "sequences"),
        ):
            await reader.say("resend", listener="a", **fields)
            refused = await reader.hear()
            found = (refused["op"], refused["code"], refused["position"])
            assert found == ("error", code, {"field": field}), (fields, refused)
        await reader.say("resend", listener="a", sequences=[1, 2])
        assert (await resent(reader))[1]["events"] == 2
