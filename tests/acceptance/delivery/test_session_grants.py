"""Streams of a consumer session on which its key has no grant."""

import pytest

from tests.acceptance.consumers import SHOP, connect, consumer, numbers
from tests.acceptance.wire import EVENT, session
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def test_a_session_without_a_grant_on_a_stream_gets_the_others(
    hub: LiveHub, orders: LiveZone
) -> None:
    orders.create_stream("secret")
    consumer(orders)
    orders.register({**SHOP, "streams": ["secret"], "session": "s"})
    narrow = orders.key("listen:orders")
    async with session(hub, narrow) as reader:
        connected = await connect(reader)
        assert [one["stream"] for one in connected["streams"]] == ["orders"]
        refused = await reader.hear_op("error")
        assert (refused["code"], refused["session"], refused["stream"]) == (
            "forbidden",
            "s",
            "secret",
        )
        orders.emit("secret", EVENT)
        orders.emit("orders", EVENT)
        [event] = await reader.events(1)
        assert event["stream"] == "orders"


async def test_a_stream_returns_with_the_grant(hub: LiveHub, orders: LiveZone) -> None:
    """What was not acknowledged comes again, and what was emitted while the grant was missing."""
    orders.create_stream("refunds")
    consumer(orders)
    orders.register({**SHOP, "streams": ["refunds"], "session": "s"})
    key = orders.key("listen:*")

    def grant(streams: str) -> None:
        body = {"grants": [{"action": "listen", "streams": streams}]}
        path = f"/v1/keys/{key.split('_')[1]}"
        assert hub.call("PATCH", path, body, key=orders.admin).status == 200

    async with session(hub, key) as reader:
        await connect(reader)
        orders.emit("refunds", EVENT)
        [event] = await reader.events(1)
        assert (event["stream"], event["sequence"]) == ("refunds", 1)
        grant("orders")
        refused = await reader.hear_op("error")
        assert (refused["code"], refused["stream"]) == ("forbidden", "refunds")
        orders.emit("refunds", EVENT)
        orders.emit("orders", EVENT)
        [event] = await reader.events(1)
        assert event["stream"] == "orders"
        grant("*")
        started = await reader.hear_op("listening", "event", "error")
        assert (started["op"], started["session"], started["stream"]) == (
            "listening",
            "s",
            "refunds",
        )
        assert started["cursor"]["sequence"] == 0
        assert await numbers(reader, 2) == [1, 2]
