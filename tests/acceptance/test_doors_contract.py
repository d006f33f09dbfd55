"""The contract of a listen, through every door: websocket in JSON and protobuf, server-sent events,
long poll, pages of history, lines, protobuf over HTTP, and inside a process.
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance import doors
from tests.acceptance.doors import Asked, Door, Refused, Told
from tests.acceptance.wire import EVENT, numbered
from tests.live import LiveHub, LiveZone

HEAR_TIMEOUT_S = 20.0
NOWHERE = "00000000-0000-4000-8000-00000000dead"
each_door = pytest.mark.parametrize("door", doors.DOORS, ids=lambda door: door.__name__)


async def take(door: Door, asked: Asked, count: int) -> list[Told]:
    """The next so many events of a listen."""
    found: list[Told] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(door(asked)) as events:  # type: ignore[type-var]
        async for told in events:
            found.append(told)
            if len(found) == count:
                break
    return found


async def refusal(door: Door, asked: Asked) -> Refused:
    """How a listen is refused before its first event."""
    with pytest.raises(Refused) as caught:
        await take(door, asked, 1)
    return caught.value


def asked_of(zone: LiveZone, start: str = "oldest", **wanted: Any) -> Asked:
    return Asked(zone.hub, zone.admin, "orders", start, wanted)


def chain(told: list[Told]) -> list[tuple[int, int]]:
    return [(one.prev, one.sequence) for one in told]


def emit(zone: LiveZone, first: int, last: int, **fields: Any) -> list[dict[str, Any]]:
    answer = zone.emit("orders", numbered(first, last, **fields))
    assert answer.status == 200, answer
    ranges: list[dict[str, Any]] = answer.json["ranges"]
    return ranges


def drop(zone: LiveZone, below: int) -> None:
    """Segments that begin below a number are no longer held."""
    zone.hub.sql(
        "UPDATE segments SET tier = 'dropped' WHERE first < %s AND last IS NOT NULL AND stream_id ="
        " (SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = 'orders')",
        below,
        zone.name,
    )


@each_door
async def test_everything_comes_once_in_order_and_goes_on_without_a_seam(
    zone: LiveZone, door: Door
) -> None:
    zone.create_stream("orders", segment_events_max=4)
    emit(zone, 1, 10)
    found: list[Told] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(door(asked_of(zone))) as events:  # type: ignore[type-var]
        async for told in events:
            found.append(told)
            if len(found) == 10:
                await asyncio.to_thread(emit, zone, 11, 15)
            if len(found) == 15:
                break
    assert chain(found) == [(n - 1, n) for n in range(1, 16)]
    assert [told.event["attributes"]["n"] for told in found] == list(range(1, 16))
    assert len({told.segment for told in found}) == 4


@pytest.mark.req("EMC-16")
@each_door
async def test_a_listen_resumes_after_the_cursor_of_the_last_event(
    zone: LiveZone, door: Door
) -> None:
    zone.create_stream("orders", segment_events_max=4)
    emit(zone, 1, 10)
    first = await take(door, asked_of(zone), 6)
    rest = await take(door, asked_of(zone, first[-1].cursor), 4)
    assert chain(rest) == [(n - 1, n) for n in range(7, 11)]
    again = await take(door, asked_of(zone, first[3].cursor), 1)
    assert again[0][:2] == first[4][:2]


@each_door
async def test_what_is_not_wanted_does_not_come_and_prev_says_so(
    zone: LiveZone, door: Door
) -> None:
    zone.create_stream("orders")
    zone.define_channel("disk", 1)
    kinds: tuple[dict[str, Any], ...] = (
        {"mask": 1},
        {"mask": 2},
        {"mask": 4, "type": "order.paid"},
        {"mask": 6, "application": ["till"]},
        {"mask": 4, "application": ["till", "web"], "type": "order.paid"},
    )
    for number, fields in enumerate(kinds, 1):
        event = {**EVENT, "attributes": {"n": number, "at": {"city": "Basel"}}, **fields}
        assert zone.emit("orders", event).status == 200
    for wanted, meant in (
        ({"mask": "4"}, [(0, 3), (3, 4), (4, 5)]),
        ({"mask": ["disk"]}, [(0, 2), (2, 4)]),
        ({"type": "order.paid"}, [(0, 3), (3, 5)]),
        ({"application": "till"}, [(0, 4), (4, 5)]),
        ({"attributes": {"n": 2, "at.city": "Basel"}}, [(0, 2)]),
        ({"mask": "1", "domain": "shop"}, [(0, 1)]),
    ):
        assert chain(await take(door, asked_of(zone, **wanted), len(meant))) == meant, wanted


@pytest.mark.req("FOX-02", "FOX-17")
@each_door
async def test_liveness_tells_live_from_missed_from_replayed(zone: LiveZone, door: Door) -> None:
    """Pages of history only replay; a poll says of what came before it that it was missed."""
    zone.create_stream("orders")
    emit(zone, 1, 2)
    [first] = await take(door, asked_of(zone), 1)
    for start, missed in (("oldest", "playback"), (first.cursor, "recovery")):
        emitting = asyncio.create_task(_emit_on(zone))
        try:
            found = await _until_live(door, asked_of(zone, start))
        finally:
            emitting.cancel()
        if door is doors.history:
            assert {told.liveness for told in found} == {"playback"}
        else:
            assert found[0].liveness == missed
            assert {told.liveness for told in found} <= {missed, "recovery", "live"}
            assert found[-1].liveness == "live"


async def _emit_on(zone: LiveZone) -> None:
    while True:
        await asyncio.to_thread(emit, zone, 1, 1)


async def _until_live(door: Door, asked: Asked) -> list[Told]:
    found: list[Told] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(door(asked)) as events:  # type: ignore[type-var]
        async for told in events:
            found.append(told)
            if told.liveness == "live" or (door is doors.history and len(found) == 5):
                break
    return found


@pytest.mark.req("EMC-08")
@each_door
async def test_a_gap_is_an_answer(zone: LiveZone, door: Door) -> None:
    zone.create_stream("orders", segment_events_max=3)
    ranges = emit(zone, 1, 10)
    drop(zone, 5)
    missed = await refusal(door, asked_of(zone, f"{ranges[0]['segment']}:1"))
    assert missed.code == "gap"
    available = {"segment": ranges[2]["segment"], "sequence": 7}
    assert missed.problem["first_available"] == available
    assert missed.problem["resume"] == {**available, "sequence": 6}
    after = f"{ranges[2]['segment']}:6"
    assert chain(await take(door, asked_of(zone, after), 1)) == [(6, 7)]
    assert chain(await take(door, asked_of(zone), 1)) == [(6, 7)]


@pytest.mark.req("EMC-15")
@each_door
async def test_a_cursor_of_another_log_is_a_mismatch_at_once(zone: LiveZone, door: Door) -> None:
    zone.create_stream("orders")
    [run] = emit(zone, 1, 20)
    current = {"segment": run["segment"], "first": 1, "last": 20}
    for cursor in (f"{NOWHERE}:500", f"{NOWHERE}:20", f"{run['segment']}:500"):
        refused = await refusal(door, asked_of(zone, cursor))
        assert (refused.code, refused.problem["current"]) == ("segment_mismatch", current)


@each_door
async def test_who_may_not_listen_is_refused(zone: LiveZone, door: Door) -> None:
    zone.create_stream("orders")
    blind = asked_of(zone)._replace(key=zone.key("emit:*", "listen:other"))
    assert (await refusal(door, blind)).code == "forbidden"
    nowhere = asked_of(zone)._replace(stream="nowhere")
    assert (await refusal(door, nowhere)).code == "unknown_stream"


@each_door
async def test_a_revoked_key_ends_an_idle_listen(zone: LiveZone, door: Door) -> None:
    """As fast as is said, without an event."""
    zone.create_stream("orders")
    emit(zone, 1, 1)
    key = zone.key("listen:orders")
    asked = asked_of(zone)._replace(key=key)
    loop = asyncio.get_running_loop()
    with pytest.raises(Refused) as caught:
        async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(door(asked)) as events:  # type: ignore[type-var]
            async for _ in events:
                loop.run_in_executor(None, zone.revoke, key)
    assert caught.value.code == "invalid_credentials"


@each_door
async def test_expired_events_and_those_for_others_are_skipped(zone: LiveZone, door: Door) -> None:
    zone.create_stream("orders")
    soon = (datetime.now(UTC) + timedelta(milliseconds=1)).isoformat()
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for fields in (
        {"expires_at": soon},
        {"expires_at": later},
        {"destinations": ["somebody", "else"]},
        {"destinations": ["else", "tester"]},
        {},
    ):
        assert zone.emit("orders", {**EVENT, **fields}).status == 200
    assert chain(await take(door, asked_of(zone), 3)) == [(0, 2), (2, 4), (4, 5)]


@each_door
async def test_system_shows_the_events_of_the_own_zone(
    hub: LiveHub, zone: LiveZone, door: Door
) -> None:
    head = hub.sql("SELECT segment::text, sequence FROM heads WHERE stream_id = 1")[0]
    hub.new_zone().create_stream("theirs")
    zone.create_stream("ours")
    asked = Asked(hub, zone.admin, "system", f"{head[0]}:{head[1]}", {"type": "stream.created"})
    [told] = await take(door, asked, 1)
    assert told.event["attributes"]["stream"] == "ours"
    reader = zone.key("listen:*", client="reader")
    assert (await refusal(door, asked._replace(key=reader))).code == "forbidden"


@each_door
async def test_registrations_name_what_they_match(zone: LiveZone, door: Door) -> None:
    zone.create_stream("orders")
    ids = [
        made["id"]
        for made in zone.register(
            {"streams": ["orders"], "attributes": {"n": 2}},
            {"streams": ["orders"], "type": "order.placed"},
            {"streams": ["orders"], "type": "order.lost"},
        )
    ]
    emit(zone, 1, 3)
    asked = asked_of(zone, registrations=ids)
    told = await take(door, asked, 3)
    assert [one.registrations for one in told] == [(ids[1],), (ids[0], ids[1]), (ids[1],)]
    none = asked_of(zone, registrations=[ids[0], 10**9])
    assert (await refusal(door, none)).code == "unknown_registration"


@each_door
async def test_a_time_resolves_to_the_first_event_of_then(zone: LiveZone, door: Door) -> None:
    zone.create_stream("orders", segment_events_max=2)
    emit(zone, 1, 3)
    [told] = await take(door, asked_of(zone), 1)
    emit(zone, 4, 6)
    at = zone.hub.call("GET", "/v1/streams/orders/events/4", key=zone.admin).json["appended_at"]
    assert chain(await take(door, asked_of(zone, at), 2)) == [(3, 4), (4, 5)]
    assert chain(await take(door, asked_of(zone, "1999-12-31T23:59:59+01:00"), 1)) == [(0, 1)]
    assert told.sequence == 1
