"""Connections of consumer sessions: how many one socket has, and what replaces one."""

import asyncio
import socket

import pytest

from delivery.sessions.delivery import delivering_sessions
from eventhub.base import limits
from tests.acceptance.consumers import (
    SHOP,
    ask,
    change,
    connect,
    consumer,
    create_group,
    create_session,
    numbers,
    post_acknowledgements,
)
from tests.acceptance.one_process import services_of
from tests.acceptance.pulls import pull
from tests.acceptance.wire import EVENT, numbered, session, until
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def small_buffered(hub: LiveHub) -> socket.socket:
    """Return a connection to the hub with the smallest buffer of the kernel."""
    host, port = hub.web[0].url.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect((host, int(port)))
    made.setblocking(False)
    return made


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


async def test_the_end_of_a_replaced_connection_leaves_the_session_to_the_new_one(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin) as old, session(hub, orders.admin) as new:
        await connect(old)
        await connect(new)
        ended = await old.hear_op("disconnected")
        assert ended["reason"] == "replaced"
        assert await numbers(new, 1) == [1]
        await new.say("ack", session="s", stream="orders", sequence=1, id="stored")
        answer = await new.hear_op("acked", "disconnected")
        assert answer["op"] == "acked"


async def test_an_acknowledgement_is_stored_while_a_stream_is_still_to_be_started(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It was answered and not stored: the connection did not know of an acknowledgement over HTTP,
    and could not start the new stream because its client did not read.
    """
    made = consumer(orders)
    for _ in range(3):
        assert orders.emit("orders", [{**EVENT, "body": "x" * 900_000}] * 8).status == 200
    path = f"/v1/sessions/{made['id']}/positions"

    def acknowledged() -> list[int]:
        found = hub.call("GET", path, key=orders.admin).json["items"]
        [of_orders] = [one for one in found if one["stream"] == "orders"]
        return [of_orders["cursor"]["sequence"], *of_orders["acknowledged"]]

    slow = small_buffered(hub)
    async with session(hub, orders.admin, sock=slow, max_queue=1) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [1, 2]
        orders.create_stream("bills")  # meanwhile the socket takes no more
        orders.register({**SHOP, "streams": ["bills"], "session": "s"})
        post_acknowledgements(orders, {"stream": "orders", "sequences": [3]}, web=1)
        await reader.say("ack", session="s", stream="orders", sequence=2, id="late")
        await until(lambda: acknowledged() == [3], limits.SEND_STALL_S_MAX / 2)
        await reader.hear_op("acked")


@pytest.mark.parametrize("of", ["sessions", "session-groups"])
async def test_what_others_change_of_a_session_is_announced(
    hub: LiveHub, orders: LiveZone, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    """A process with thousands of sessions compares all of them with the database every some
    seconds only: for so long a replaced connection got events, and settings were the old ones.
    """
    monkeypatch.setattr(limits, "SESSION_CHECK_S", 3_600.0)
    monkeypatch.setattr(limits, "SESSION_SETTINGS_CHECK_S", 3_600.0)
    group = create_group(orders)
    made = consumer(orders, **({"group": "g"} if of == "session-groups" else {}))
    changed = group if of == "session-groups" else made
    async with (
        services_of(hub) as services,
        delivering_sessions(hub.database_url, services) as delivery,
    ):
        principal = await services.authorizer.authenticate(orders.admin)
        mine, _ = await delivery.connect(principal, "s", asyncio.Event(), "websocket")
        for window in (5, 6, 7):  # the first may be noticed as the process starts
            change(orders, changed, of=of, window=window)
            await until(lambda: bool(mine.messages))
            assert mine.messages.pop()["window"] == window
        async with session(hub, orders.admin) as other:
            await connect(other)
            await until(lambda: mine.end_reason == "replaced")
        await delivery.disconnect([mine])
        mine, _ = await delivery.connect(principal, "s", asyncio.Event(), "websocket")
        pull(orders)
        await until(lambda: mine.end_reason == "replaced")
        await delivery.disconnect([mine])
