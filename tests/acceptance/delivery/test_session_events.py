"""Consumer sessions over server-sent events, acknowledged with requests."""

import asyncio

import pytest

from tests.acceptance.consumers import (
    SHOP,
    acknowledge_by_post,
    change,
    connect,
    consumer,
    create_group,
    create_session,
    numbers,
)
from tests.acceptance.pulls import pulled
from tests.acceptance.session_events import END, session_events, started
from tests.acceptance.transports import Refused
from tests.acceptance.wire import EVENT, numbered, session, until
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def test_events_come_within_the_window_until_they_are_acknowledged(
    hub: LiveHub, orders: LiveZone
) -> None:
    """A message that comes instead of the third event shows that this one is held back."""
    made = consumer(orders, window=2)
    orders.emit("orders", numbered(1, 5))
    async with session_events(hub, orders.admin) as reader:
        assert started(reader) == {"orders": 0}
        first, second = await reader.events(2)
        assert (first["sequence"], second["sequence"]) == (1, 2)
        assert (first["stream"], first["prev"], second["prev"]) == ("orders", 0, 1)
        assert first["id"] == f"{first['segment']}:1"
        assert first["registrations"]
        change(orders, made, order="none")
        assert (await reader.hear())["op"] == "changed"
        acknowledge_by_post(orders, sequence=2)
        assert await numbers(reader, 2) == [3, 4]
        acknowledge_by_post(orders, sequences=[4], web=0)
        assert await numbers(reader, 1) == [5]
    last = {"Last-Event-ID": first["id"].replace(":1", ":5")}
    async with session_events(hub, orders.admin, web=1, **last) as reader:
        assert started(reader) == {"orders": 2}
        assert await numbers(reader, 2) == [3, 5]


async def test_all_streams_of_the_session_come_in_its_order(hub: LiveHub, orders: LiveZone) -> None:
    """A stream that it gets later is announced before its events."""
    orders.create_stream("refunds")
    create_session(orders, order="priority")
    orders.register({"streams": ["orders", "refunds"], "session": "s"})
    orders.emit("orders", [{**EVENT, "priority": 1}, {**EVENT, "priority": 7}])
    orders.emit("refunds", {**EVENT, "priority": 5})
    async with session_events(hub, orders.admin) as reader:
        found = [(one["stream"], one["sequence"]) for one in await reader.events(3)]
        assert found == [("orders", 2), ("refunds", 1), ("orders", 1)]
        orders.create_stream("returns")
        orders.register({"streams": ["returns"], "session": "s"})
        started = await reader.hear()
        assert (started["op"], started["stream"]) == ("listening", "returns")
        orders.emit("returns", EVENT)
        [event] = await reader.events(1)
        assert (event["stream"], event["liveness"]) == ("returns", "live")


async def test_the_newest_connection_replaces_the_one_before_on_any_transport(
    hub: LiveHub, orders: LiveZone
) -> None:
    """The response ends after it has said so."""
    consumer(orders)
    orders.emit("orders", EVENT)
    replaced = {"op": "disconnected", "session": "s", "reason": "replaced"}
    async with session_events(hub, orders.admin) as first:
        assert await numbers(first, 1) == [1]
        async with session_events(hub, orders.admin, web=1) as second:
            assert await first.hear() == {**replaced, "id": None}
            assert await first.hear() == END
            assert await numbers(second, 1) == [1]
            async with session(hub, orders.admin) as socket:
                await connect(socket)
                assert await second.hear() == {**replaced, "id": None}
                assert await numbers(socket, 1) == [1]
                async with session_events(hub, orders.admin):
                    assert await socket.hear_op("disconnected") == replaced


async def test_a_disconnected_session_ends_and_is_refused(hub: LiveHub, orders: LiveZone) -> None:
    made = consumer(orders)
    async with session_events(hub, orders.admin) as reader:
        change(orders, made, disconnected=True)
        assert (await reader.hear())["reason"] == "request"
        assert await reader.hear() == END
    with pytest.raises(Refused) as refused:
        async with session_events(hub, orders.admin):
            pass
    assert (refused.value.code, refused.value.problem["status"]) == ("session_disconnected", 409)


async def test_a_best_effort_session_starts_at_the_end_and_needs_no_acknowledgement(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, quality="best_effort", window=1)
    orders.emit("orders", numbered(1, 2))
    async with session_events(hub, orders.admin) as reader:
        assert started(reader) == {"orders": 2}
        orders.emit("orders", numbered(3, 5))
        assert await numbers(reader, 3) == [3, 4, 5]


async def test_a_member_of_a_group_that_shares_gets_its_share(
    hub: LiveHub, orders: LiveZone
) -> None:
    """At its end it gives its events back."""
    create_group(orders, sharing="one", window=2)
    for name in ("one", "two"):
        create_session(orders, name, group="g")
    orders.register({**SHOP, "session_group": "g"})
    orders.emit("orders", numbered(1, 6))
    async with session_events(hub, orders.admin, "one") as reader:
        first, second = await reader.events(2)
        assert (first["sequence"], first["attempt"], second["sequence"]) == (1, 1, 2)
        assert pulled(orders, 1, "two", web=1) == [(3, 1)]
        acknowledge_by_post(orders, "one", sequence=1)
        assert await numbers(reader, 1) == [4]
    assert pulled(orders, 1, "two", web=1) == [(2, 2)]


async def test_a_page_connects_with_a_token_until_it_is_no_longer_valid(
    hub: LiveHub, orders: LiveZone
) -> None:
    key = orders.key("listen:*", client="page")
    create_session(orders, key=key)
    orders.register({**SHOP, "session": "s"}, key=key)
    async with session_events(hub, token=orders.token(key)) as reader:
        orders.emit("orders", EVENT)
        assert await numbers(reader, 1) == [1]
        await asyncio.to_thread(orders.revoke, key)
        ended = await reader.hear()
        assert (ended["op"], ended["status"]) == ("error", 401)
        assert await reader.hear() == END


async def test_connected_sessions_are_counted_by_transport(hub: LiveHub, orders: LiveZone) -> None:
    def counted() -> float:
        text = hub.call("GET", "/metrics").body.decode()
        name = 'eventhub_connected_sessions{transport="sse"} '
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    consumer(orders)
    before = counted()
    async with session_events(hub, orders.admin):
        await until(lambda: counted() == before + 1)
    await until(lambda: counted() == before)
