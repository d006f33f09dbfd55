"""The log through the public API: producers at both processes, cursors, gaps and holes."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import pytest
from eventhub_client.types import Cursor, HubProblem

from eventhub.base import limits
from tests.acceptance.wire import EVENT, Emitter, numbered, session
from tests.live import LiveHub, LiveZone

WINDOW = limits.PRODUCER_WINDOW


def made(number: int, incarnation: int = 0) -> dict[str, Any]:
    """Build an event with a producer's number."""
    return {**EVENT, "id": {"sequence": number, "incarnation": incarnation}}


def test_a_producers_number_posted_at_both_processes_at_once_is_stored_once(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders", segment_events_max=30)
    with Emitter(zone, web=0) as one, Emitter(zone, web=1) as two, ThreadPoolExecutor(2) as pool:
        for number in range(1, 201):
            posts = [pool.submit(e.post, "orders", made(number)) for e in (one, two)]
            answers = [post.result() for post in posts]
            assert [status for status, _ in answers] == [200, 200]
            first, second = sorted((a for _, a in answers), key=lambda one: len(one["duplicates"]))
            [run], [again] = first["ranges"], second["duplicates"]
            assert (run["first"], first["duplicates"], second["ranges"]) == (number, [], [])
            assert (again["segment"], again["sequence"]) == (run["segment"], number)


def test_duplicates_inside_one_request_are_named_by_index(zone: LiveZone) -> None:
    zone.create_stream("orders")
    answer = zone.emit("orders", [made(1), made(2), made(1), EVENT, made(2)]).json
    [run] = answer["ranges"]
    assert (run["first"], run["last"]) == (1, 3)
    assert [(d["index"], d["sequence"]) for d in answer["duplicates"]] == [(2, 1), (4, 2)]


def test_below_the_window_409_stores_nothing_and_a_new_incarnation_starts_over(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    assert zone.emit("orders", made(WINDOW + 1)).status == 200
    problem = zone.emit("orders", [EVENT, made(WINDOW + 2), made(1)]).refused(
        409, "producer_window"
    )
    assert problem["position"] == {"index": 2, "field": "id.sequence"}
    assert hub.call("GET", "/v1/streams/orders", key=zone.admin).json["last"] == 1
    assert zone.emit("orders", [made(2), made(WINDOW + 2)]).json["ranges"][0]["last"] == 3
    assert zone.emit("orders", made(1, incarnation=1)).json["ranges"][0]["first"] == 4


async def test_a_listener_starts_at_oldest_now_or_a_cursor(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=4)
    ranges = zone.emit("orders", numbered(1, 10)).json["ranges"]
    async with session(hub, zone.admin) as reader:
        for name, start, first in (
            ("now", "now", 11),
            ("old", "oldest", 1),
            ("five", {"segment": ranges[1]["segment"], "sequence": 5}, 6),
            ("none", {"segment": ranges[1]["segment"], "sequence": 4}, 5),
            ("upper", {"segment": ranges[1]["segment"].upper(), "sequence": 8}, 9),
        ):
            begun = await reader.listen("orders", name=name, start=start)
            assert (begun["cursor"]["sequence"], begun["head"]) == (first - 1, 10)
            if first < 11:
                events = await reader.events(11 - first)
                assert [e["sequence"] for e in events] == list(range(first, 11))
                liveness = "playback" if start == "oldest" else "recovery"
                assert {e["liveness"] for e in events} == {liveness}
            await reader.say("stop", listener=name)
            stopped = await reader.hear_op("stopped")
            assert stopped["cursor"]["sequence"] == 10
        await reader.listen("orders")
        zone.emit("orders", EVENT)
        [event] = await reader.events(1)
        assert (event["sequence"], event["liveness"]) == (11, "live")


async def test_a_cursor_that_is_not_of_this_stream_is_a_segment_mismatch(
    hub: LiveHub, zone: LiveZone
) -> None:
    for stream in ("orders", "other"):
        zone.create_stream(stream, segment_events_max=4)
        zone.emit(stream, numbered(1, 6))
    other_zone = hub.new_zone()
    other_zone.create_stream("orders")
    foreign = other_zone.emit("orders", EVENT).json["ranges"][0]["segment"]
    [first, second] = _segments(hub, zone, "orders")
    for wrong in (
        {"segment": str(uuid.uuid4()), "sequence": 1},
        {"segment": foreign, "sequence": 1},
        {"segment": _segments(hub, zone, "other")[0], "sequence": 1},
        {"segment": second, "sequence": 7},
        {"segment": second, "sequence": 3},
        {"segment": first, "sequence": 5},
    ):
        async with session(hub, zone.admin, web=1) as reader:
            answer = await reader.ask("orders", start=wrong)
            assert (answer["op"], answer["code"], answer["status"]) == (
                "segment_mismatch",
                "segment_mismatch",
                409,
            ), wrong
            assert answer["current"] == {"segment": second, "first": 5, "last": 6}
            await reader.listen("orders", start="oldest")  # same name: the refused one is not there
    async with zone.client() as client:
        with pytest.raises(HubProblem) as caught:
            await _first(client, Cursor(second, 7))
    assert caught.value.code == "segment_mismatch"


def _segments(hub: LiveHub, zone: LiveZone, stream: str) -> list[str]:
    answer = hub.call("GET", f"/v1/streams/{stream}/segments", key=zone.admin)
    return [item["uuid"] for item in answer.json["items"]]


async def _first(client: Any, start: Any) -> Any:
    async with aclosing(client.listen("orders", start=start)) as events:
        return await anext(events)


def drop(hub: LiveHub, *segments: str) -> None:
    for segment in segments:
        hub.sql("UPDATE segments SET tier = 'dropped' WHERE uuid = %s::uuid", segment)


async def test_a_cursor_into_a_dropped_segment_is_a_gap_with_the_first_available_event(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders", segment_events_max=4)
    zone.emit("orders", numbered(1, 15))
    names = _segments(hub, zone, "orders")
    drop(hub, *names[:2])
    first_left = {"segment": names[2], "sequence": 9}
    for segment, sequence in ((names[0], 0), (names[0], 2), (names[0], 4), (names[1], 7)):
        async with session(hub, zone.admin) as reader:
            await reader.say(
                "listen",
                listener="a",
                stream="orders",
                **{"from": {"segment": segment, "sequence": sequence}},
            )
            answer = await reader.hear_op("gap")
            assert (answer["listener"], answer["first_available"]) == ("a", first_left)
            assert await reader.nothing_waits()
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start={"segment": names[1], "sequence": 8})
        assert [e["sequence"] for e in await reader.events(7)] == list(range(9, 16))
        await reader.listen("orders", name="old", start="oldest")
        assert (await reader.events(1))[0]["sequence"] == 9
    async with zone.client() as client:
        with pytest.raises(HubProblem) as caught:
            await _first(client, Cursor(names[0], 4))
    assert (caught.value.code, caught.value.status) == ("gap", 410)
    assert caught.value.problem["first_available"] == first_left
    hub.call("GET", "/v1/streams/orders/events/3", key=zone.admin).refused(410, "gap")


async def test_a_row_missing_from_the_log_is_reported_as_log_hole_and_never_skipped(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders", segment_events_max=5)
    zone.create_stream("sound")
    zone.emit("orders", numbered(1, 12))
    hub.sql(
        "DELETE FROM events e USING segments s WHERE s.id = e.segment_id AND s.uuid = %s::uuid"
        " AND e.sequence = 7",
        _segments(hub, zone, "orders")[1],
    )
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("orders", start="oldest")
        assert [e["sequence"] for e in await reader.events(6)] == list(range(1, 7))
        answer = await reader.hear()
        assert (answer["op"], answer["code"], answer["listener"]) == ("error", "log_hole", "a")
        await reader.listen("sound")  # the socket and other streams go on
        zone.emit("sound", EVENT)
        assert (await reader.events(1))[0]["sequence"] == 1
    async with zone.client() as client:
        with pytest.raises(HubProblem, match="log_hole"):
            async with aclosing(client.listen("orders", start="oldest")) as events:  # type: ignore[type-var]
                async for delivered in events:
                    assert delivered.sequence < 7


def test_streams_of_the_same_name_in_two_zones_are_independent(hub: LiveHub) -> None:
    one, two = hub.new_zone(), hub.new_zone()
    for number, zone in enumerate((one, two), 1):
        zone.create_stream("orders")
        zone.emit("orders", numbered(1, number, name=zone.name))
    for number, zone in enumerate((one, two), 1):
        assert hub.call("GET", "/v1/streams/orders", key=zone.admin).json["last"] == number
        shown = hub.call("GET", "/v1/streams/orders/events/1", key=zone.admin).json
        assert shown["name"] == zone.name
    one.create_stream("mine")
    hub.call("GET", "/v1/streams/mine", key=two.admin).refused(404, "unknown_stream")
    two.emit("mine", EVENT).refused(404, "unknown_stream")


@pytest.mark.parametrize("field", ["recipients", "hop_limit"])
def test_fields_of_later_versions_are_refused_and_not_ignored(zone: LiveZone, field: str) -> None:
    zone.create_stream("orders")
    problem = zone.emit("orders", [EVENT, {**EVENT, field: ["x"]}]).refused(400, "unknown_field")
    assert problem["position"] == {"index": 1, "field": field}
