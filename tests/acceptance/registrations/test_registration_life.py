"""A suspended registration matches nothing, and events during the suspension are never delivered
(RDY-05); the strategy of a stream can change at any time.
"""

import itertools
from operator import itemgetter
from typing import Any

import pytest

from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.wire import session
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed"}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


@pytest.mark.req("RDY-05")
async def test_an_event_during_a_suspension_is_never_delivered_and_one_after_it_is(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    """To a callback whose forwarder was stopped meanwhile, and to a listener."""
    definition = {"streams": ["orders"], "domain": "shop"}
    one, other = orders.register(
        {**definition, "callback": sink.url("/rdy05"), "key": "mine"},
        {**definition, "suspended": True},
    )
    path = f"/v1/registrations/{one['id']}"
    for process in hub.forwarders:
        process.kill()
    try:
        async with session(hub, orders.admin, web=1) as reader:
            await reader.listen("orders", registrations=[one["id"], other["id"]])
            for number, suspended in enumerate((False, True, False)):
                changed = hub.call("PATCH", path, {"suspended": suspended}, key=orders.admin)
                assert (changed.json["version"], changed.json["suspended"]) == (
                    number + 1,
                    suspended,
                )
                orders.emit("orders", EVENT)
            events = await reader.events(2)
            assert await reader.nothing_waits()
    finally:
        hub.start_callbacks()
    expected = [(1, [one["id"]]), (3, [one["id"]])]
    assert [(event["sequence"], event["registrations"]) for event in events] == expected
    called = sorted((call.json for call in sink.wait(2, "/rdy05")), key=itemgetter("sequence"))
    assert [(call["sequence"], call["registrations"]) for call in called] == expected

    def listed(query: str) -> list[int]:
        page = hub.call("GET", f"/v1/registrations?{query}", key=orders.admin).json
        return [item["id"] for item in page["items"]]

    assert listed("suspended=true") == [other["id"]]
    assert listed("suspended=false") == listed("key=mine") == [one["id"]]
    hub.call("GET", "/v1/registrations?suspended=1", key=orders.admin).refused(400, "invalid_field")
    newest = "from=now&order=backward&limit=1&type=registration.changed"
    page = hub.call("GET", f"/v1/streams/system/events?{newest}", key=orders.admin).json
    [announced] = [one["event"]["attributes"] for one in page["events"]]
    assert (announced["suspended"], announced["key"]) == (False, "mine")


def test_a_registration_has_its_cost_and_the_registration_with_an_equal_filter(
    hub: LiveHub, orders: LiveZone
) -> None:
    pairs = {"streams": ["orders"], "type": "order.placed", "attributes": {"size": 7}}
    text = '(and (= size 7.0) (= @type "order.placed"))'
    same = {"streams": ["orders"], "language": "predicate", "filter": text}
    [first] = orders.register(pairs)
    second, third = orders.register(same, {**same, "filter": "(or (not (exists a)) (exists a))"})
    assert (first["warnings"], first["equal_to"]) == ([], None)
    assert (second["warnings"], second["equal_to"]) == (["equal_to"], first["id"])
    assert third["equal_to"] is None
    assert second["cost"]["reached_by"] == [{"by": "pair", "names": ["size"]}]
    assert third["cost"]["every_event"]
    stranger = orders.key("listen:*", client="stranger")
    [theirs] = orders.register(same, key=stranger)
    assert theirs["equal_to"] is None
    path = f"/v1/registrations/{second['id']}"
    changed = hub.call("PATCH", path, {"language": "predicate", "filter": "(= size 8)"},
                       key=orders.admin)  # fmt: skip
    assert changed.json["warnings"] == []
    body = {**pairs, "key": "k"}
    assert hub.call("POST", "/v1/registrations", body, key=orders.admin).status == 201
    hub.call("POST", "/v1/registrations", body, key=orders.admin).refused(409, "key_taken")


async def test_the_strategy_of_a_stream_changes_during_traffic_and_nothing_is_lost(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    definitions = [{"streams": ["orders"], "attributes": {"n": n % 3}} for n in range(60)]
    registrations = [one["id"] for one in orders.register(*definitions)]
    endpoint = orders.endpoint(sink.url("/strategy"))
    [called] = orders.register(
        {"streams": ["orders"], "attributes": {"n": 1}, "endpoint": endpoint["id"]}
    )
    many = ({"attributes": {"n": n}, "endpoint": endpoint["id"]} for n in range(10, 1_010))
    orders.register(*({"streams": ["orders"], **one} for one in many))
    assert hub.call("GET", "/v1/streams/orders", key=orders.admin).json["matching"] == "auto"
    counts = itertools.count()
    [(stream_id,)] = hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = 'orders'",
        orders.name,
    )

    def logged(event: str, *words: str) -> bool:
        """Return whether a forwarder's log has a line of the stream with these words."""
        expected = {f"stream={stream_id}", *words}
        lines = (line for process in hub.forwarders for line in process.log().splitlines())
        return any(event in line and expected <= set(line.split()) for line in lines)

    async with session(hub, orders.admin) as reader:
        await reader.listen("orders", registrations=registrations)
        events: list[dict[str, Any]] = []
        for strategy in ("counting", "compile", "auto", "index"):
            orders.emit("orders", {**EVENT, "attributes": {"n": next(counts) % 3}})
            events += await reader.events(1)
            answer = hub.call("PUT", "/v1/streams/orders", {"matching": strategy}, key=orders.admin)
            assert answer.json["matching"] == strategy
            eventually(lambda name=strategy: logged("interest_", f"strategy={name}"), strategy)  # type: ignore[misc]
        epoch = build(hub, orders)
        eventually(lambda: is_used(hub, epoch), "an index of more than a thousand")
        rest = (next(counts) % 3, 500)
        orders.emit("orders", [{**EVENT, "attributes": {"n": n}} for n in rest])
        events += await reader.events(1)
    for number, event in enumerate(events):
        assert event["registrations"] == [
            id for at, id in enumerate(registrations) if at % 3 == number % 3
        ]
    assert sorted(one.json["sequence"] for one in sink.wait(3, "/strategy")) == [2, 5, 6]
    assert called["endpoint"] == endpoint["id"]
    hub.call("PUT", "/v1/streams/orders", {"matching": "best"}, key=orders.admin).refused(
        400, "invalid_field"
    )
    text = hub.call("GET", "/metrics").body.decode()
    series = 'strategy="counting",stream="listeners",work="lookups"'
    assert f"eventhub_match_work_total{{{series}}}" in text
