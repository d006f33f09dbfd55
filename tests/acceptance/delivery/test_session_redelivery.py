"""Events of sessions that could not be processed, and are delivered again at once."""

import time
from datetime import UTC, datetime

import pytest

from tests.acceptance.consumers import (
    SHOP,
    acknowledge,
    acknowledge_by_post,
    connect,
    consumer,
    create_group,
    create_session,
    numbers,
)
from tests.acceptance.pulls import pull, pulled
from tests.acceptance.session_events import session_events
from tests.acceptance.wire import EVENT, Session, numbered, session, until
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def nak(reader: Session, *sequences: int, name: str = "s") -> None:
    await reader.say("nak", session=name, stream="orders", sequences=[*sequences])


async def attempts(reader: Session, count: int) -> list[tuple[int, int]]:
    """Receive events; return the sequence and the attempt of each, 0 for the first time."""
    return [(one["sequence"], one.get("attempt", 0)) for one in await reader.events(count)]


async def test_an_event_comes_again_at_once_in_a_full_window(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Each time with the next attempt; the others and the window do not change."""
    consumer(orders, window=3)
    orders.emit("orders", numbered(1, 5))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        first = (await reader.events(3))[1]
        await nak(reader, 2)
        [again] = await reader.events(1)
        assert again["event"] == first["event"]
        assert (again["stream"], again["session"]) == ("orders", "s")
        assert (again["sequence"], again["attempt"], again["liveness"]) == (2, 2, "recovery")
        assert again["registrations"] == first["registrations"]
        assert "prev" not in again
        await nak(reader, 3, 2)
        assert await attempts(reader, 2) == [(3, 2), (2, 3)]
        assert await reader.nothing_waits()
        await reader.say("ack", session="s", stream="orders", sequence=1)
        [fourth] = await reader.events(1)
        assert (fourth["sequence"], fourth["prev"]) == (4, 3)


async def test_only_what_was_delivered_and_not_acknowledged_comes_again(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, window=2)
    orders.emit("orders", numbered(1, 2))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [1, 2]
        await acknowledge(reader, 1)
        await nak(reader, 1, 3, 99)
        assert await reader.nothing_waits()
        refused = {"session": "s", "stream": "refunds", "sequences": [1]}
        await reader.say("nak", **refused)
        assert (await reader.hear())["code"] == "session_not_connected"


async def test_an_event_that_has_expired_meanwhile_is_settled(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It does not come again, and its place in the window is free."""
    consumer(orders, window=1)
    ends_s = time.time() + 1.5
    expires_at = datetime.fromtimestamp(ends_s, UTC).isoformat()
    orders.emit("orders", [{**EVENT, "expires_at": expires_at}, EVENT])
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await attempts(reader, 1) == [(1, 0)]
        await until(lambda: time.time() > ends_s)
        await nak(reader, 1)
        assert await attempts(reader, 1) == [(2, 0)]


async def test_an_event_comes_again_over_the_connection_of_another_process(
    hub: LiveHub, orders: LiveZone
) -> None:
    """On any transport; what is requested without a connection has no effect on the next one."""
    consumer(orders, window=2)
    orders.emit("orders", numbered(1, 3))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await attempts(reader, 2) == [(1, 0), (2, 0)]
        acknowledge_by_post(orders, sequences=[1], nak=[2])
        assert sorted(await attempts(reader, 2)) == [(2, 2), (3, 0)]
    acknowledge_by_post(orders, nak=[3])
    async with session_events(hub, orders.admin) as events:
        assert await attempts(events, 2) == [(2, 0), (3, 0)]
        acknowledge_by_post(orders, nak=[3])
        assert await attempts(events, 1) == [(3, 2)]


def test_what_was_pulled_is_given_back(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    assert pulled(orders, 2) == [(1, 1), (2, 1)]
    acknowledge_by_post(orders, nak=[2])
    assert pulled(orders, 2, web=1) == [(2, 2), (3, 1)]
    assert pull(orders)["events"] == []


async def test_a_member_gives_an_event_back_to_its_group(hub: LiveHub, orders: LiveZone) -> None:
    """A connected member over its connection, any member with a request."""
    create_group(orders, sharing="one", window=1)
    for name in ("one", "two"):
        create_session(orders, name, group="g")
    orders.register({**SHOP, "session_group": "g"})
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin) as reader:
        await connect(reader, "one")
        assert await attempts(reader, 1) == [(1, 1)]
        await nak(reader, 1, name="one")
        assert await attempts(reader, 1) == [(1, 2)]
        acknowledge_by_post(orders, "one", nak=[1])
        assert await attempts(reader, 1) == [(1, 3)]
        acknowledge_by_post(orders, "two", nak=[1])
        assert await reader.nothing_waits()
