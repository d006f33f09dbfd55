"""Consumer sessions that are pulled: visibility, acknowledgements, what comes again."""

import asyncio
import json

import pytest

from eventhub.event import event_pb2
from tests.acceptance.consumers import SHOP, acknowledge, change, connect, consumer, numbers
from tests.acceptance.pulls import PULL, acknowledged, cursor, end_visibility, pull, pulled
from tests.acceptance.wire import EVENT, numbered, session, until
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def test_a_pull_returns_matching_events_and_nobody_else_gets_them(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", [EVENT, {**EVENT, "domain": "bank"}, EVENT])
    answer = pull(orders, max=10, wait_s=10)
    assert (answer["session"], answer["messages"]) == ("s", [])
    one, two = answer["events"]
    assert (one["stream"], one["sequence"], one["attempt"]) == ("orders", 1, 1)
    assert (two["sequence"], two["liveness"]) == (3, "recovery")
    assert one["event"]["domain"] == "shop"
    assert len(one["registrations"]) == 1
    assert "prev" not in one
    assert pull(orders)["events"] == []
    assert pull(orders, web=1)["events"] == []
    assert cursor(orders) == (0, [])


async def test_what_is_not_acknowledged_comes_again_when_its_time_is_over(
    hub: LiveHub, orders: LiveZone
) -> None:
    """In the order in which it was handed out, before new events, over another process too."""
    consumer(orders)
    orders.emit("orders", numbered(1, 4))
    assert pulled(orders, 3) == [(1, 1), (2, 1), (3, 1)]
    assert pull(orders, max=0, **acknowledged(2))["acknowledged"] == 1
    end_visibility(hub)
    assert pulled(orders, 3, web=1) == [(1, 2), (3, 2), (4, 1)]
    end_visibility(hub, 3)
    assert pulled(orders, 1) == [(3, 3)]
    assert cursor(orders) == (0, [2])
    assert pull(orders, web=1, **acknowledged(through=3))["acknowledged"] == 2
    assert cursor(orders) == (3, [])
    assert pull(orders, **acknowledged(4, 4))["acknowledged"] == 1
    assert pull(orders, **acknowledged(4, through=99))["acknowledged"] == 0
    assert cursor(orders) == (4, [])


async def test_a_waiting_pull_gets_an_event_when_it_is_emitted(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    assert pull(orders, web=1)["events"] == []
    waits = asyncio.create_task(asyncio.to_thread(pull, orders, wait_s=20, web=1))
    orders.emit("orders", EVENT)
    [event] = (await waits)["events"]
    assert (event["sequence"], event["liveness"]) == (1, "live")


async def test_a_waiting_pull_gets_what_another_process_gives_back(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", EVENT)
    assert pulled(orders, 1) == [(1, 1)]
    waits = asyncio.create_task(asyncio.to_thread(pull, orders, wait_s=20, web=1))
    back = [{"stream": "orders", "sequences": [1], "visibility_s": 0}]
    assert pull(orders, max=0, visibility=back)["extended"] == 1
    [event] = (await waits)["events"]
    assert (event["sequence"], event["attempt"]) == (1, 2)


async def test_an_extended_event_does_not_come_again(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 2))
    assert pulled(orders, 2, visibility_s=5) == [(1, 1), (2, 1)]
    longer = [{"stream": "orders", "sequences": [2], "visibility_s": 600}]
    pull(orders, max=0, visibility=longer)
    hub.sql("UPDATE session_claims SET claimed_until = claimed_until - interval '6 s'")
    assert pulled(orders, 1) == [(1, 2)]
    assert pull(orders)["events"] == []


async def test_a_holder_gets_no_more_than_its_window(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders, window=3)
    orders.emit("orders", numbered(1, 9))
    assert pulled(orders, 2) == [(1, 1), (2, 1)]
    assert pulled(orders, 1, web=1) == [(3, 1)]
    assert pull(orders, max=10)["events"] == []
    answer = pull(orders, max=10, wait_s=10, **acknowledged(2, 3))
    assert [event["sequence"] for event in answer["events"]] == [4, 5]


async def test_a_process_that_is_killed_loses_nothing(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 6))
    assert [one for one, _ in pulled(orders, 4, web=1)] == [1, 2, 3, 4]
    pull(orders, web=1, max=0, **acknowledged(1, 3))
    hub.web[1].kill()
    try:
        assert pulled(orders, 2) == [(5, 1), (6, 1)]
        end_visibility(hub, 2, 4)
        assert pulled(orders, 2) == [(2, 2), (4, 2)]
        pull(orders, max=0, **acknowledged(through=6))
        assert cursor(orders) == (6, [])
    finally:
        hub.web[1].start()


async def test_the_newer_of_a_connection_and_a_pull_serves_the_session(
    hub: LiveHub, orders: LiveZone
) -> None:
    """What was handed out and not acknowledged comes again over the other one."""
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    assert pulled(orders, 2) == [(1, 1), (2, 1)]
    pull(orders, max=0, **acknowledged(1))
    async with session(hub, orders.admin, web=1) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [2, 3]
        await acknowledge(reader, 3)
        assert pulled(orders, 1) == [(2, 1)]
        assert (await reader.hear_op("disconnected"))["reason"] == "replaced"
        await connect(reader)
        assert await numbers(reader, 1) == [2]
        await acknowledge(reader, 2)
        waits = asyncio.create_task(
            asyncio.to_thread(hub.call, "POST", PULL.format("s"), {"wait_s": 60}, key=orders.admin)
        )
        await until(lambda: _is_pulled(orders))
        assert (await reader.hear_op("disconnected"))["reason"] == "replaced"
        await connect(reader)
        (await waits).refused(409, "session_replaced")


async def test_orders_and_formats_are_those_of_other_transports(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, order="priority")
    for priority in (1, 5, 3):
        orders.emit("orders", {**EVENT, "priority": priority})
    assert pulled(orders, 2) == [(2, 1), (3, 1)]
    end_visibility(hub)
    answer = _pull_as(orders, "application/x-ndjson", max=1)
    first, last = (json.loads(line) for line in answer.splitlines())
    assert (first["sequence"], first["attempt"], last["op"]) == (2, 2, "end")
    body = _pull_as(orders, "application/x-protobuf", max=1)
    size, at = _varint(body)
    frame = event_pb2.ServerFrame.FromString(body[at : at + size]).event
    assert (frame.stream, frame.sequence, frame.attempt) == ("orders", 3, 2)
    assert event_pb2.Event.FromString(frame.event).priority == 3
    assert pulled(orders, 1) == [(1, 1)]
    pull(orders, max=0, **acknowledged(2, 3))
    assert cursor(orders) == (0, [2, 3])
    pull(orders, max=0, **acknowledged(1))
    assert cursor(orders) == (3, [])


async def test_a_session_that_cannot_be_pulled_is_refused(hub: LiveHub, orders: LiveZone) -> None:
    made = consumer(orders)
    other = orders.key("listen:*", client="other")
    for key, name, status, code in (
        (orders.admin, "none", 404, "unknown_session"),
        (other, "s", 404, "unknown_session"),
        (hub.new_zone().admin, "s", 404, "unknown_session"),
        ("", "s", 401, "unauthenticated"),
    ):
        hub.call("POST", PULL.format(name), {}, key=key).refused(status, code)
    change(orders, made, quality="best_effort")
    hub.call("POST", PULL.format("s"), {}, key=orders.admin).refused(409, "session_not_reliable")
    change(orders, made, quality="reliable", disconnected=True)
    hub.call("POST", PULL.format("s"), {}, key=orders.admin).refused(409, "session_disconnected")


async def test_a_key_pulls_only_streams_that_it_may_listen_to(
    hub: LiveHub, orders: LiveZone
) -> None:
    orders.create_stream("refunds")
    consumer(orders)
    orders.register({**SHOP, "streams": ["refunds"], "session": "s"})
    narrow = orders.key("listen:orders")
    orders.emit("refunds", EVENT)
    orders.emit("orders", EVENT)
    answer = pull(orders, key=narrow, wait_s=10)
    assert [event["stream"] for event in answer["events"]] == ["orders"]
    [refused] = answer["messages"]
    assert (refused["stream"], refused["code"]) == ("refunds", "forbidden")
    [event] = pull(orders, wait_s=10)["events"]
    assert event["stream"] == "refunds"


def _pull_as(zone: LiveZone, media: str, **body: object) -> bytes:
    headers = {"Accept": media}
    answer = zone.hub.call("POST", PULL.format("s"), body, key=zone.admin, headers=headers)
    assert answer.status == 200, answer
    return answer.body


def _varint(data: bytes) -> tuple[int, int]:
    """Decode a length; return it and the place after it."""
    value = at = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << (7 * at)
        at += 1
        if byte < 0x80:
            return value, at


def _is_pulled(zone: LiveZone) -> bool:
    """Return whether pulls serve a session of the zone."""
    [(count,)] = zone.hub.sql(
        "SELECT count(*) FROM sessions s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.attached_process = 'pull'",
        zone.name,
    )
    return bool(count)
