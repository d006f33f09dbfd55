"""Emits over a websocket: the rules and answers of the emit route, on the connection that also
receives (RDY-52).
"""

from typing import Any

import pytest

from tests.acceptance.consumers import connect, consumer, create_session, numbers
from tests.acceptance.wire import EVENT, Session, numbered, session
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def emit(reader: Session, events: Any, stream: str = "orders", **more: Any) -> dict[str, Any]:
    """Emit over the socket; return the answer."""
    await reader.say("emit", stream=stream, events=events, **more)
    return await reader.hear_op("emitted", "error")


async def test_emitted_events_are_answered_with_their_sequences(
    hub: LiveHub, orders: LiveZone
) -> None:
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders")
        emitted = await emit(reader, numbered(1, 3), id="1")
        [run] = emitted["ranges"]
        assert (emitted["id"], emitted["stream"], emitted["duplicates"]) == ("1", "orders", [])
        assert (run["first"], run["last"]) == (1, 3)
        again = {**EVENT, "id": "one of mine"}
        assert (await emit(reader, again))["ranges"][0]["first"] == 4
        repeated = await emit(reader, [again])
        assert repeated["ranges"] == []
        assert repeated["duplicates"] == [{"index": 0, "segment": run["segment"], "sequence": 4}]
        reader.skipped.clear()


@pytest.mark.req("RDY-52")
async def test_a_supplier_and_a_consumer_share_a_socket(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    supplies = [{"domain": "shop", "type": "order.*"}]
    create_session(orders, "till", kind="supplier", supplies=supplies)
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        emitted = await emit(reader, EVENT, session="till", id="7")
        assert (emitted["session"], emitted["id"]) == ("till", "7")
        refused = await emit(reader, [EVENT, {**EVENT, "type": "refund"}], session="till", id="8")
        assert (refused["status"], refused["code"]) == (422, "type_not_supplied")
        assert (refused["id"], refused["session"], refused["position"]["index"]) == ("8", "till", 1)
        assert (await emit(reader, EVENT, session="s"))["code"] == "wrong_session_kind"
        assert (await emit(reader, EVENT, session="nobody"))["code"] == "unknown_session"
        await emit(reader, EVENT)
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [1, 2], "a refused request took a number"


@pytest.mark.parametrize(
    ("fields", "code", "position"),
    [
        ({"events": []}, "empty_batch", {}),
        ({"events": [{"domain": "d", "type": 7}]}, "invalid_field", {"index": 0, "field": "type"}),
        ({"events": {"domain": "d", "typ": "t"}}, "unknown_field", {"field": "typ"}),
        ({"stream": "nowhere", "events": EVENT}, "unknown_stream", {}),
        ({"stream": "system", "events": EVENT}, "forbidden", {}),
        ({}, "missing_field", {"field": "events"}),
    ],
)
async def test_wrong_emits_are_refused_and_the_socket_stays_open(
    hub: LiveHub, orders: LiveZone, fields: dict[str, Any], code: str, position: dict[str, Any]
) -> None:
    async with session(hub, orders.admin) as reader:
        await reader.say("emit", **{"stream": "orders", "id": "x", **fields})
        refused = await reader.hear_op("error")
        assert (refused["code"], refused["position"]) == (code, position), refused
        assert refused.get("id", "x") == "x"
        assert (await emit(reader, EVENT))["ranges"][0]["first"] == 1


async def test_a_key_without_the_grant_may_not_emit(hub: LiveHub, orders: LiveZone) -> None:
    async with session(hub, orders.key("listen:*")) as reader:
        refused = await emit(reader, EVENT, id="1")
        assert (refused["code"], refused["id"], refused["stream"]) == ("forbidden", "1", "orders")
