"""Clients within a process of the hub and remote programs get the same; a forwarder continues where
another one ended; a client that roams between processes gets everything once.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from tests.acceptance.transports import ListenerSpec, ReceivedEvent, in_process
from tests.acceptance.wire import numbered, session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

PATTERN = {"domain": "shop", "type": "order.placed", "attributes": {"n": 2}}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def take(events: AsyncIterator[ReceivedEvent], count: int) -> list[ReceivedEvent]:
    found: list[ReceivedEvent] = []
    async with asyncio.timeout(30), aclosing(events) as listened:  # type: ignore[type-var]
        async for one in listened:
            found.append(one)
            if len(found) == count:
                break
    return found


@pytest.mark.req("SUN-20")
async def test_a_subscriber_in_the_process_and_a_remote_webhook_both_get_the_event(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    path = f"/{orders.name}/sun20"
    orders.register({"streams": ["orders"], **PATTERN, "callback": sink.url(path)})
    orders.emit("orders", numbered(1, 3))
    inside = await take(in_process(ListenerSpec(hub, orders.admin, "orders", interest=PATTERN)), 1)
    [outside] = await asyncio.to_thread(sink.wait, 1, path)
    assert [one.sequence for one in inside] == [outside.json["sequence"]] == [2]
    assert inside[0].segment == outside.json["segment"]
    assert inside[0].event == outside.json["event"]
    orders.emit("orders", numbered(1, 3))
    again = await take(
        in_process(ListenerSpec(hub, orders.admin, "orders", inside[0].cursor, PATTERN)), 1
    )
    called = await asyncio.to_thread(sink.wait, 2, path)
    assert [again[0].sequence] == [called[1].json["sequence"]] == [5]


@pytest.mark.req("SUN-30")
def test_the_forwarders_position_survives_a_restart_of_all_of_them(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    path = f"/{orders.name}/sun30"
    orders.register({"streams": ["orders"], "callback": sink.url(path)})
    orders.emit("orders", numbered(1, 3))
    sink.wait(3, path)
    position = "SELECT f.sequence FROM forwarding f JOIN streams s ON s.id = f.stream_id"
    position += " JOIN zones z ON z.id = s.zone_id WHERE z.name = %s"
    for process in hub.forwarders:
        process.kill()
    try:
        assert hub.sql(position, orders.name) == [(3,)]
        orders.emit("orders", numbered(4, 6))
        assert hub.sql(position, orders.name) == [(3,)]
    finally:
        hub.start_callbacks()
    called = sink.wait(6, path)
    assert sorted(one.json["sequence"] for one in called) == [1, 2, 3, 4, 5, 6]
    assert len({one.id for one in called}) == 6


@pytest.mark.req("FOX-77")
async def test_a_client_that_roams_twice_during_its_recovery_gets_the_full_set_once(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It takes a part of what it missed from one web process, goes to the other, and back, each
    time from the cursor of its last event. Events go on being emitted.
    """
    orders.emit("orders", numbered(1, 5))
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders", start="oldest")
        received = await reader.events(5)
    orders.emit("orders", numbered(6, 1_000))
    for web, count in ((1, 300), (0, 300)):
        received += await roamed(hub, orders, web, received[-1], count)
        orders.emit("orders", numbered(len(received), len(received)))
    received += await roamed(hub, orders, 1, received[-1], 1_002 - len(received))
    assert [one["sequence"] for one in received] == list(range(1, 1_003))
    missed = received[5:]
    assert {one["liveness"] for one in missed} == {"recovery"}
    assert all(one["prev"] == one["sequence"] - 1 for one in missed)


async def roamed(
    hub: LiveHub, zone: LiveZone, web: int, last: dict[str, Any], count: int
) -> list[dict[str, Any]]:
    """Take events from another web process, after the last one; then the connection breaks."""
    cursor = {"segment": last["segment"], "sequence": last["sequence"]}
    async with contextlib.AsyncExitStack() as closing:
        reader = await closing.enter_async_context(session(hub, zone.admin, web=web))
        await reader.listen("orders", start=cursor)
        found = await reader.events(count)
        reader.socket.transport.abort()
    return found
