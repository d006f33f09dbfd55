"""The contract of a listener on every transport: websocket in JSON and protobuf, server-sent
events, long poll, pages of history, lines, protobuf over HTTP, and in process.
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance import transports
from tests.acceptance.transports import (
    ListenerSpec,
    ReceivedEvent,
    Refused,
    Transport,
    each_transport,
)
from tests.acceptance.wire import EVENT, numbered
from tests.live import LiveHub, LiveZone

HEAR_TIMEOUT_S = 60.0
NOWHERE = "00000000-0000-4000-8000-00000000dead"


async def take(transport: Transport, spec: ListenerSpec, count: int) -> list[ReceivedEvent]:
    """Return the next `count` events of a listener."""
    found: list[ReceivedEvent] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(transport(spec)) as events:  # type: ignore[type-var]
        async for received in events:
            found.append(received)
            if len(found) == count:
                break
    return found


async def refusal(transport: Transport, spec: ListenerSpec) -> Refused:
    """Return the refusal of a listener before its first event."""
    with pytest.raises(Refused) as caught:
        await take(transport, spec, 1)
    return caught.value


def listener_spec(zone: LiveZone, start: str = "oldest", **interest: Any) -> ListenerSpec:
    return ListenerSpec(zone.hub, zone.admin, "orders", start, interest)


def chain(received: list[ReceivedEvent]) -> list[tuple[int, int]]:
    return [(one.prev, one.sequence) for one in received]


def emit(zone: LiveZone, first: int, last: int, **fields: Any) -> list[dict[str, Any]]:
    answer = zone.emit("orders", numbered(first, last, **fields))
    assert answer.status == 200, answer
    ranges: list[dict[str, Any]] = answer.json["ranges"]
    return ranges


def drop(zone: LiveZone, below: int) -> None:
    """Mark the sealed segments that begin below a number as dropped."""
    zone.hub.sql(
        "UPDATE segments SET tier = 'dropped' WHERE first < %s AND last IS NOT NULL AND stream_id ="
        " (SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = 'orders')",
        below,
        zone.name,
    )


@each_transport
async def test_every_event_is_delivered_once_in_order_across_segments(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders", segment_events_max=4)
    emit(zone, 1, 10)
    found: list[ReceivedEvent] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(transport(listener_spec(zone))) as events:  # type: ignore[type-var]
        async for received in events:
            found.append(received)
            if len(found) == 10:
                await asyncio.to_thread(emit, zone, 11, 15)
            if len(found) == 15:
                break
    assert chain(found) == [(n - 1, n) for n in range(1, 16)]
    assert [received.event["attributes"]["n"] for received in found] == list(range(1, 16))
    assert len({received.segment for received in found}) == 4


@pytest.mark.req("EMC-08")
@each_transport
async def test_a_listener_resumes_after_the_cursor_of_the_last_event(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders", segment_events_max=4)
    emit(zone, 1, 10)
    first = await take(transport, listener_spec(zone), 6)
    rest = await take(transport, listener_spec(zone, first[-1].cursor), 4)
    assert chain(rest) == [(n - 1, n) for n in range(7, 11)]
    again = await take(transport, listener_spec(zone, first[3].cursor), 1)
    assert again[0][:2] == first[4][:2]


@each_transport
async def test_unmatched_events_are_skipped_and_prev_accounts_for_them(
    zone: LiveZone, transport: Transport
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
    for interest, meant in (
        ({"mask": "4"}, [(0, 3), (3, 4), (4, 5)]),
        ({"mask": ["disk"]}, [(0, 2), (2, 4)]),
        ({"type": "order.paid"}, [(0, 3), (3, 5)]),
        ({"application": "till"}, [(0, 4), (4, 5)]),
        ({"attributes": {"n": 2, "at.city": "Basel"}}, [(0, 2)]),
        ({"mask": "1", "domain": "shop"}, [(0, 1)]),
    ):
        assert chain(await take(transport, listener_spec(zone, **interest), len(meant))) == meant, (
            interest
        )


@pytest.mark.req("FOX-17")
@each_transport
async def test_an_event_missed_is_delivered_with_its_whole_type(
    zone: LiveZone, transport: Transport
) -> None:
    """Its type is (signature, version, liveness); version 2 is declared while nobody reads."""
    zone.create_stream("orders")
    declare(zone, {})
    tags: tuple[dict[str, Any], ...] = ({"n": 1, "m": 1}, {"m": "x", "n": 2}, {"n": 3}, {})
    for attributes in tags:
        sent = {**EVENT, "version": "1", "attributes": attributes}
        assert zone.emit("orders", sent).status == 200
    [first] = await take(transport, listener_spec(zone, signature=True), 1)
    declare(zone, {"properties": {"n": {"type": "integer"}}})
    found = await take(transport, listener_spec(zone, first.cursor, signature=True), 3)
    shown = [
        zone.hub.call("GET", f"/v1/streams/orders/events/{n}", key=zone.admin).json["signature"]
        for n in (1, 2, 3, 4)
    ]
    assert [received.signature for received in (first, *found)] == shown
    assert shown[0] == shown[1] and len({*shown}) == 3, "equal tags, equal signatures"
    assert {received.event["version"] for received in found} == {"1"}
    missed = "playback" if transport is transports.history else "recovery"
    assert {received.liveness for received in found} == {missed}
    [unsigned] = await take(transport, listener_spec(zone), 1)
    assert unsigned.signature == "", "a listener that does not request it gets none"


def declare(zone: LiveZone, schema: dict[str, Any]) -> None:
    path = "/v1/types/shop/order.placed"
    answer = zone.hub.call("PUT", path, {"schema": schema}, key=zone.admin)
    assert answer.status == 201, answer


@pytest.mark.req("FOX-02")
@each_transport
async def test_liveness_separates_live_recovery_and_playback(
    zone: LiveZone, transport: Transport
) -> None:
    """History pages are playback only; a poll marks earlier events as recovery."""
    zone.create_stream("orders")
    emit(zone, 1, 2)
    [first] = await take(transport, listener_spec(zone), 1)
    for start, missed in (("oldest", "playback"), (first.cursor, "recovery")):
        emitting = asyncio.create_task(_emit_on(zone))
        try:
            found = await _until_live(transport, listener_spec(zone, start))
        finally:
            emitting.cancel()
        if transport is transports.history:
            assert {received.liveness for received in found} == {"playback"}
        else:
            assert found[0].liveness == missed
            assert {received.liveness for received in found} <= {missed, "recovery", "live"}
            assert found[-1].liveness == "live"


async def _emit_on(zone: LiveZone) -> None:
    while True:
        await asyncio.to_thread(emit, zone, 1, 1)


async def _until_live(transport: Transport, spec: ListenerSpec) -> list[ReceivedEvent]:
    found: list[ReceivedEvent] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(transport(spec)) as events:  # type: ignore[type-var]
        async for received in events:
            found.append(received)
            if received.liveness == "live" or (transport is transports.history and len(found) == 5):
                break
    return found


@pytest.mark.req("EMC-23")
@each_transport
async def test_a_gap_is_reported_with_the_first_available_event(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders", segment_events_max=3)
    ranges = emit(zone, 1, 10)
    drop(zone, 5)
    missed = await refusal(transport, listener_spec(zone, f"{ranges[0]['segment']}:1"))
    assert missed.code == "gap"
    available = {"segment": ranges[2]["segment"], "sequence": 7}
    assert missed.problem["first_available"] == available
    assert missed.problem["resume"] == {**available, "sequence": 6}
    after = f"{ranges[2]['segment']}:6"
    assert chain(await take(transport, listener_spec(zone, after), 1)) == [(6, 7)]
    assert chain(await take(transport, listener_spec(zone), 1)) == [(6, 7)]


@each_transport
async def test_a_cursor_of_another_log_is_a_mismatch_at_once(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders")
    [run] = emit(zone, 1, 20)
    current = {"segment": run["segment"], "first": 1, "last": 20}
    for cursor in (f"{NOWHERE}:500", f"{NOWHERE}:20", f"{run['segment']}:500"):
        refused = await refusal(transport, listener_spec(zone, cursor))
        assert (refused.code, refused.problem["current"]) == ("segment_mismatch", current)


@each_transport
async def test_a_caller_without_the_listen_grant_is_refused(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders")
    blind = listener_spec(zone)._replace(key=zone.key("emit:*", "listen:other"))
    assert (await refusal(transport, blind)).code == "forbidden"
    nowhere = listener_spec(zone)._replace(stream="nowhere")
    assert (await refusal(transport, nowhere)).code == "unknown_stream"


@each_transport
async def test_a_revoked_key_ends_an_idle_listener(zone: LiveZone, transport: Transport) -> None:
    """Within the documented time, without an event."""
    zone.create_stream("orders")
    emit(zone, 1, 1)
    key = zone.key("listen:orders")
    spec = listener_spec(zone)._replace(key=key)
    loop = asyncio.get_running_loop()
    with pytest.raises(Refused) as caught:
        async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(transport(spec)) as events:  # type: ignore[type-var]
            async for _ in events:
                loop.run_in_executor(None, zone.revoke, key)
    assert caught.value.code == "invalid_credentials"


@each_transport
async def test_expired_events_and_those_for_others_are_skipped(
    zone: LiveZone, transport: Transport
) -> None:
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
    assert chain(await take(transport, listener_spec(zone), 3)) == [(0, 2), (2, 4), (4, 5)]


@each_transport
async def test_system_has_the_events_of_the_own_zone(
    hub: LiveHub, zone: LiveZone, transport: Transport
) -> None:
    head = hub.sql("SELECT segment::text, sequence FROM heads WHERE stream_id = 1")[0]
    hub.new_zone().create_stream("theirs")
    zone.create_stream("ours")
    spec = ListenerSpec(
        hub, zone.admin, "system", f"{head[0]}:{head[1]}", {"type": "stream.created"}
    )
    [received] = await take(transport, spec, 1)
    assert received.event["attributes"]["stream"] == "ours"
    reader = zone.key("listen:*", client="reader")
    assert (await refusal(transport, spec._replace(key=reader))).code == "forbidden"


@each_transport
async def test_events_name_the_registrations_that_they_match(
    zone: LiveZone, transport: Transport
) -> None:
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
    spec = listener_spec(zone, registrations=ids)
    received = await take(transport, spec, 3)
    assert [one.registrations for one in received] == [(ids[1],), (ids[0], ids[1]), (ids[1],)]
    none = listener_spec(zone, registrations=[ids[0], 10**9])
    assert (await refusal(transport, none)).code == "unknown_registration"


@each_transport
async def test_a_time_resolves_to_the_first_event_after_it(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders", segment_events_max=2)
    emit(zone, 1, 3)
    [received] = await take(transport, listener_spec(zone), 1)
    emit(zone, 4, 6)
    at = zone.hub.call("GET", "/v1/streams/orders/events/4", key=zone.admin).json["appended_at"]
    assert chain(await take(transport, listener_spec(zone, at), 2)) == [(3, 4), (4, 5)]
    assert chain(await take(transport, listener_spec(zone, "1999-12-31T23:59:59+01:00"), 1)) == [
        (0, 1)
    ]
    assert received.sequence == 1
