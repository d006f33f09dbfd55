"""Connections of consumer sessions: how many one socket has, and what replaces one."""

import pytest

from eventhub.base import limits
from tests.acceptance.consumers import (
    ask,
    connect,
    consumer,
    create_session,
    numbers,
)
from tests.acceptance.wire import numbered, session
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


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


async def test_a_late_acknowledgement_of_a_replaced_connection_ends_it_and_is_not_answered(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It was answered, after the end of the session was reported, and not stored."""
    consumer(orders)
    orders.emit("orders", numbered(1, 1))
    async with session(hub, orders.admin) as old:
        for _ in range(3):
            await connect(old)
            assert await numbers(old, 1) == [1]
            async with session(hub, orders.admin, web=1) as new:
                await connect(new)
                await old.say("ack", session="s", stream="orders", sequence=1, id="late")
                ended = await old.hear_op("disconnected")
                assert ended == {"op": "disconnected", "session": "s", "reason": "replaced"}
            await old.say("ping")  # behind what comes late
            await old.hear_op("pong")
    assert [one for one in old.skipped if one["op"] == "acked"] == []
