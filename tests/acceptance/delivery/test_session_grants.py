"""Consumer sessions whose clients lose rights: a grant on a stream, or a group."""

import pytest

from tests.acceptance.consumers import SHOP, connect, consumer, create_session, numbers
from tests.acceptance.eventhub.access.test_audience import FOR_OPS, put_into, received_by
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


async def test_an_event_that_waits_for_the_window_is_not_sent_to_a_client_that_left_its_audience(
    hub: LiveHub, orders: LiveZone
) -> None:
    orders.create_stream("others")
    key = orders.key("listen:*", client="watch")
    put_into(orders, "watch", "ops")
    create_session(orders, key=key, window=1)
    orders.register({**SHOP, "session": "s"}, key=key)
    async with session(hub, key) as reader:
        await connect(reader)
        await reader.listen("others", name="others")
        orders.emit("orders", [EVENT, FOR_OPS, FOR_OPS, EVENT])
        assert await numbers(reader, 1) == [1]
        put_into(orders, "watch")
        while await received_by(reader, orders, "others") != [2]:
            pass  # until this connection knows
        await reader.say("ack", session="s", stream="orders", sequence=1)
        assert await numbers(reader, 1) == [4]
