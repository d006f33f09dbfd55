"""Connections of consumer sessions: how many one socket has, and what takes effect at once.

A process that serves a session looks every second for what another one has changed. What is
notified is faster: its time is taken from the last look, which a changed setting causes.
"""

from time import monotonic
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.consumers import (
    acknowledge,
    acknowledge_by_post,
    ask,
    change,
    connect,
    consumer,
    create_session,
    numbers,
)
from tests.acceptance.wire import Session, numbered, session
from tests.live import LiveHub, LiveZone

ORDERS = ("none", "fifo", "none")  # changes of a setting that has no effect here
AT_ONCE_S = limits.SESSION_CHECK_S / 2


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def checked(reader: Session, zone: LiveZone, made: dict[str, Any], order: str) -> float:
    """Have the process look at its sessions; return when it has, in seconds."""
    change(zone, made, order=order)
    await reader.hear_op("changed")
    return monotonic()


async def test_a_socket_has_a_maximum_of_sessions(hub: LiveHub, zone: LiveZone) -> None:
    names = [f"s{number}" for number in range(limits.SESSIONS_PER_SOCKET_MAX + 1)]
    for name in names:
        create_session(zone, name)
    async with session(hub, zone.admin) as reader:
        for name in names[:-1]:
            await connect(reader, name)
        refused = await ask(reader, names[-1])
        assert (refused["status"], refused["code"]) == (429, "too_many_requests")
        assert refused["sessions_max"] == limits.SESSIONS_PER_SOCKET_MAX
        await reader.say("disconnect", session=names[0])
        await reader.hear_op("disconnected")
        await connect(reader, names[-1])


async def test_an_acknowledgement_over_http_is_notified(hub: LiveHub, orders: LiveZone) -> None:
    """Nor does a save of positions, which would notice it, too, wait at that time."""
    made = consumer(orders, window=1)
    orders.emit("orders", numbered(1, 5))
    took_s = []
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [1]
        await reader.say("ack", session="s", stream="orders", sequence=1)
        assert await numbers(reader, 1) == [2]
        for sequence, order in enumerate(ORDERS, 2):
            await acknowledge(reader, 1)
            checked_s = await checked(reader, orders, made, order)
            acknowledge_by_post(orders, sequence=sequence)
            assert await numbers(reader, 1) == [sequence + 1]
            took_s.append(monotonic() - checked_s)
    assert min(took_s) < AT_ONCE_S


async def test_a_late_acknowledgement_of_a_replaced_connection_ends_it_and_is_not_answered(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It was answered, after the end of the session was reported, and not stored."""
    made = consumer(orders)
    orders.emit("orders", numbered(1, 1))
    took_s = []
    async with session(hub, orders.admin) as old:
        for order in ORDERS:
            await connect(old)
            assert await numbers(old, 1) == [1]
            async with session(hub, orders.admin, web=1) as new:
                checked_s = await checked(old, orders, made, order)
                await connect(new)
                await old.say("ack", session="s", stream="orders", sequence=1, id="late")
                ended = await old.hear_op("disconnected")
                took_s.append(monotonic() - checked_s)
                assert ended == {"op": "disconnected", "session": "s", "reason": "replaced"}
            await old.say("ping")  # behind what comes late
            await old.hear_op("pong")
    assert [one for one in old.skipped if one["op"] == "acked"] == []
    assert min(took_s) < AT_ONCE_S
