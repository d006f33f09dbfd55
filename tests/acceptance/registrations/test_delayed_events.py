"""Delayed events of a running hub: every route takes them, and each is stored once, when due."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from eventhub.base import limits
from eventhub.event.protobuf_codec import decode
from tests.acceptance.wire import session
from tests.live import Answer, LiveHub, LiveZone

FAR = "2031-01-01T00:00:00.000000Z"
EVENT: dict[str, Any] = {"domain": "shop", "type": "reminder"}
LATER = {**EVENT, "deliver_at": FAR}
CLOUD = {"specversion": "1.0", "id": "c1", "source": "/s", "type": "reminder"}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def stored(zone: LiveZone, given: Any, **more: Any) -> dict[str, Any]:
    answer = zone.emit("orders", given, **more)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def waiting(zone: LiveZone, query: str = "") -> list[dict[str, Any]]:
    found = zone.hub.call("GET", f"/v1/timers?delayed=true{query}", key=zone.admin).json["items"]
    return [one for one in found if one["handle"] is None]


def typed(content_type: str, **more: str) -> dict[str, str]:
    return {"Content-Type": content_type, **more}


def sequences(zone: LiveZone) -> list[tuple[int, Any]]:
    """Return the sequences of all events, each with its attribute `n`."""
    rows = zone.hub.sql(
        "SELECT e.sequence, e.payload FROM zones z JOIN streams s ON s.zone_id = z.id"
        " JOIN segments g ON g.stream_id = s.id JOIN events e ON e.segment_id = g.id"
        " WHERE z.name = %s ORDER BY e.sequence",
        zone.name,
    )
    return [(sequence, decode(bytes(one)).attributes.get("n")) for sequence, one in rows]


async def test_an_event_gets_its_sequence_when_it_is_due(hub: LiveHub, orders: LiveZone) -> None:
    hub.start_callbacks()
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders")
        began_s = time.monotonic()
        given = [{**EVENT, "attributes": {"n": n}} for n in range(4)]
        given[0] |= {"delay_ms": 600, "expires_in_ms": 60_000}
        given[2] |= {"delay_ms": 600}
        answer = orders.emit("orders", given)
        [run], delayed = answer.json["ranges"], answer.json["delayed"]
        assert (run["first"], run["last"], answer.json["duplicates"]) == (1, 2, [])
        assert [one["index"] for one in delayed] == [0, 2]
        assert answer.headers["eventhub-caused"] == "1-2"
        shown = hub.call("GET", f"/v1/timers/{delayed[0]['timer']}", key=orders.admin).json
        assert (shown["at"], shown["handle"]) == (delayed[0]["due_at"], None)
        found = await reader.events(4)
        assert time.monotonic() - began_s >= 0.55
    order = [(one["sequence"], one["event"]["attributes"]["n"]) for one in found]
    assert order == [(1, 1), (2, 3), (3, 0), (4, 2)]
    first = found[2]["event"]
    assert "deliver_at" not in first and "delay_ms" not in first
    assert first["expires_at"] > shown["at"], "it expires after it is due, not after its receipt"
    assert waiting(orders) == []


async def test_more_events_than_one_step_stores_that_are_due_at_one_time_keep_their_order(
    hub: LiveHub, orders: LiveZone
) -> None:
    hub.start_callbacks()
    count, each = limits.TIMERS_FIRED_AT_ONCE + 500, 500
    due = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders")
        for first in range(0, count, each):
            given = [{**EVENT, "attributes": {"n": n}, "deliver_at": due}
                     for n in range(first, first + each)]  # fmt: skip
            assert len(stored(orders, given)["delayed"]) == each
        found = await reader.events(count)
    assert [one["event"]["attributes"]["n"] for one in found] == list(range(count))
    assert [one["sequence"] for one in found] == list(range(1, count + 1))


async def test_every_route_takes_delayed_events(hub: LiveHub, orders: LiveZone) -> None:
    lines = b"\n".join(orjson.dumps(one) for one in (LATER, LATER))
    cloud = orjson.dumps({**CLOUD, "id": "c2", "ehdeliverat": FAR})
    batch = orjson.dumps([{**CLOUD, "id": f"c{n}", "ehdelayms": 3_600_000} for n in (3, 4)])
    binary = {"ce-specversion": "1.0", "ce-id": "c5", "ce-source": "/s", "ce-type": "reminder",
              "ce-ehdelayms": "3600000"}  # fmt: skip
    first = orders.emit("orders", LATER)
    assert (first.headers["eventhub-sequence"], "eventhub-caused" in first.headers) == ("0", False)
    answers = [
        first.json,
        stored(orders, [LATER, LATER]),
        stored(orders, lines, headers=typed("application/x-ndjson")),
        stored(orders, cloud, headers=typed("application/cloudevents+json")),
        stored(orders, batch, headers=typed("application/cloudevents-batch+json")),
        stored(orders, b"{}", headers=typed("application/json", **binary)),
    ]
    async with session(hub, orders.admin) as reader:
        await reader.say("emit", stream="orders", events=[LATER])
        answers.append(await reader.hear_op("emitted"))
    counts = [len(one["delayed"]) for one in answers]
    assert counts == [1, 2, 2, 1, 2, 1, 1]
    assert all(one["ranges"] == [] == one["duplicates"] for one in answers)
    async with orders.client() as client:
        receipt = await client.emit("orders", [LATER, EVENT])
        [delayed] = receipt.delayed
        assert (delayed.at, delayed.due_at, receipt.cursor.sequence) == (0, FAR, 1)
        await client.call("DELETE", f"/v1/timers/{delayed.timer}")
    shown = waiting(orders)
    assert sorted(one["id"] for one in shown) == sorted(
        each["timer"] for one in answers for each in one["delayed"]
    )
    assert {one["event"]["type"] for one in shown} == {"reminder"}
    [[counted]] = hub.sql(
        "SELECT timers FROM timer_counts JOIN zones z ON z.id = zone_id WHERE z.name = %s",
        orders.name,
    )
    assert counted == len(shown) == 10


def test_a_repeat_finds_the_event_that_waits_or_was_stored(hub: LiveHub, orders: LiveZone) -> None:
    hub.start_callbacks()
    numbered = {**LATER, "id": {"incarnation": 7, "sequence": 5}}
    for given, more in (
        ({**LATER, "id": "a"}, {}),
        (numbered, {}),
        (LATER, {"headers": {"Idempotency-Key": "k1"}}),
        ([{**LATER, "id": "b"}] * 2, {}),
    ):
        first, again = stored(orders, given, **more), stored(orders, given, **more)
        assert first == again, "the timer is the same"
        assert len({one["timer"] for one in first["delayed"]}) == 1
    assert len(waiting(orders)) == 4
    # the one that is stored first counts
    plain = stored(orders, {**EVENT, "id": "a", "attributes": {"n": 1}})
    assert plain["ranges"][0]["first"] == 1
    repeated = stored(orders, [{**LATER, "id": "a"}, {**LATER, "id": "new"}])
    assert [(one["index"], one["sequence"]) for one in repeated["duplicates"]] == [(0, 1)]
    assert [one["index"] for one in repeated["delayed"]] == [1]
    soon = {**EVENT, "id": {"sequence": 9}, "delay_ms": 50, "attributes": {"n": 2}}
    stored(orders, soon)
    hub.sql(
        "UPDATE timers SET due_at = now() WHERE zone_id = (SELECT id FROM zones WHERE name = %s)",
        orders.name,
    )
    hub.sql("SELECT pg_notify('eventhub_timers', '')")
    until_s = time.monotonic() + 20
    while waiting(orders):
        assert time.monotonic() < until_s
        time.sleep(0.05)
    found = sequences(orders)
    assert len(found) == 6, "`a` was not stored again"
    for repeat in (soon, {**soon, "delay_ms": 0}, {**soon, "delay_ms": None, "deliver_at": now()}):
        [known] = stored(orders, repeat)["duplicates"]
        assert (known["sequence"], 2) in found
    assert len(stored(orders, {**LATER, "id": "new"})["duplicates"]) == 1
    assert waiting(orders) == [], "the timer of a repeat is gone"


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def test_a_request_with_delayed_events_is_stored_whole_or_not_at_all(
    hub: LiveHub, orders: LiveZone
) -> None:
    stored(orders, {**EVENT, "id": {"sequence": 1_000_000}})
    below = {**EVENT, "id": {"sequence": 1}}
    refused = orders.emit("orders", [LATER, EVENT, below])
    assert (refused.status, refused.json["code"]) == (409, "producer_window")
    assert refused.json["position"] == {"index": 2, "field": "id.sequence"}
    quota = {"timers": 2}
    answer = hub.operate("PUT", f"/v1/limits?zone={orders.name}&client=tester", quota)
    assert answer.status == 200, answer
    for given in ([LATER, LATER, EVENT, LATER], [LATER] * 3):
        refused = orders.emit("orders", given)
        assert (refused.status, refused.json["code"]) == (409, "limit_reached"), refused
    orders.create_stream("fast", durability="transient")
    refused = orders.emit("fast", [EVENT, {**EVENT, "delay_ms": 1}])
    assert (refused.status, refused.json["code"]) == (400, "invalid_field")
    assert refused.json["position"] == {"index": 1, "field": "delay_ms"}
    large = {**LATER, "body": "x" * limits.TIMER_EVENT_BYTES_MAX}
    refused = orders.emit("orders", [EVENT, large])
    assert (refused.status, refused.json["position"]) == (413, {"index": 1})
    assert waiting(orders) == []
    assert len(sequences(orders)) == 1
    assert len(stored(orders, [LATER, EVENT, LATER])["delayed"]) == 2
    assert len(sequences(orders)) == 2


def test_a_key_cancels_delayed_events_of_its_client_on_streams_that_it_emits_to(
    hub: LiveHub, orders: LiveZone
) -> None:
    own, other = orders.key("emit:orders"), orders.key("emit:orders", client="other")
    [delayed] = stored(orders, LATER, key=own)["delayed"]
    path = f"/v1/timers/{delayed['timer']}"

    def ask(method: str, key: str) -> Answer:
        return hub.call(method, path, key=key)

    assert ask("DELETE", other).status == 404
    assert ask("GET", own).json["event"]["source"] == "tester"
    assert ask("DELETE", own).status == 204
    assert (ask("DELETE", own).status, waiting(orders)) == (404, [])
    rows = hub.sql("SELECT timers FROM timer_counts WHERE zone_id ="
                   " (SELECT id FROM zones WHERE name = %s)", orders.name)  # fmt: skip
    assert rows == [(0,)]
