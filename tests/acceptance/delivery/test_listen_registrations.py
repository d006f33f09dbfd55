"""A websocket listen that names registrations: each event once, naming those that matched, exact at
both ends of every version.
"""

from typing import Any

import pytest

from tests.acceptance.wire import PROTOBUF, Session, session
from tests.live import LiveHub, LiveZone


def order(customer: int, **more: Any) -> dict[str, Any]:
    return {"domain": "shop", "type": "order", "attributes": {"customer": customer, **more}}


def registration(**attributes: Any) -> dict[str, Any]:
    return {"streams": ["orders"], "domain": "shop", "type": "order", "attributes": attributes}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def received(reader: Session, count: int) -> list[tuple[int, list[int]]]:
    return [(event["sequence"], event["registrations"]) for event in await reader.events(count)]


@pytest.mark.parametrize("web", [0, 1])
async def test_one_event_comes_once_and_names_all_that_matched(
    hub: LiveHub, orders: LiveZone, web: int
) -> None:
    """Created through one process, listened to through another, emitted at once."""
    one, two, other = orders.register(
        registration(customer=1), registration(), registration(customer=2)
    )
    ids = [two["id"], one["id"]]
    async with session(hub, orders.admin, web=web) as reader:
        await reader.listen("orders", registrations=ids)
        orders.emit("orders", [order(1), order(2), {"domain": "shop", "type": "refund"}, order(1)])
        expected = [(1, sorted(ids)), (2, [two["id"]]), (4, sorted(ids))]
        assert await received(reader, 3) == expected
        assert await reader.nothing_waits()
        assert other["id"] not in ids


async def test_binary_frames_name_them_too(hub: LiveHub, orders: LiveZone) -> None:
    [one] = orders.register(registration(customer=1))
    async with session(hub, orders.admin, subprotocol=PROTOBUF) as reader:
        await reader.listen("orders", registrations=[one["id"]])
        orders.emit("orders", [order(2), order(1)])
        [event] = await reader.events(1)
        assert (event["sequence"], list(event["frame"].registrations)) == (2, [one["id"]])


async def test_a_resumed_listener_applies_each_version_where_it_held(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Changed and deleted while the reader was away: no event from before the start or after the
    end, and in between those that each version matches.
    """
    orders.emit("orders", order(1))  # 1: before it began
    one, kept = orders.register(registration(customer=1), registration(customer=9))
    assert one["from"]["orders"]["sequence"] == 1
    start = one["from"]["orders"]
    orders.emit("orders", [order(1), order(2)])  # 2, 3
    path = f"/v1/registrations/{one['id']}"
    patched = hub.call("PATCH", path, {"attributes": {"customer": 2}}, key=orders.admin)
    assert patched.status == 200, patched
    orders.emit("orders", [order(1), order(2)])  # 4, 5
    async with session(hub, orders.admin, web=1) as reader:
        await reader.listen("orders", registrations=[one["id"], kept["id"]], start=start)
        assert await received(reader, 2) == [(2, [one["id"]]), (5, [one["id"]])]
        assert hub.call("DELETE", path, key=orders.admin).status == 204
        orders.emit("orders", [order(2), order(9)])  # 6, 7
        assert await received(reader, 1) == [(7, [kept["id"]])]
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders", registrations=[kept["id"]], start="oldest")
        assert await received(reader, 1) == [(7, [kept["id"]])]


async def test_a_change_counts_from_the_next_event_on(hub: LiveHub, orders: LiveZone) -> None:
    """Without waiting: the change is made through one process, the event is emitted through it, and
    the listener of the other process has applied the change before it evaluates the event.
    """
    [one] = orders.register(registration(customer=0))
    path = f"/v1/registrations/{one['id']}"
    async with session(hub, orders.admin, web=1) as reader:
        await reader.listen("orders", registrations=[one["id"]])
        for customer in range(1, 30):
            change = {"attributes": {"customer": customer}}
            assert hub.call("PATCH", path, change, key=orders.admin).status == 200
            orders.emit("orders", [order(customer - 1), order(customer)])
        assert await received(reader, 29) == [(2 * n, [one["id"]]) for n in range(1, 30)]


async def test_a_listener_whose_registrations_have_all_ended_ends_with_an_error(
    hub: LiveHub, orders: LiveZone
) -> None:
    [one] = orders.register(registration(customer=1))
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders", registrations=[one["id"]])
        orders.emit("orders", order(1))
        assert await received(reader, 1) == [(1, [one["id"]])]
        hub.call("DELETE", f"/v1/registrations/{one['id']}", key=orders.admin)
        orders.emit("orders", order(1))
        ended = await reader.hear_op("error", "event")
        assert (ended["op"], ended["code"], ended["listener"]) == (
            "error",
            "unknown_registration",
            "a",
        )


async def test_only_own_live_registrations_of_the_stream_can_be_named(
    hub: LiveHub, orders: LiveZone
) -> None:
    orders.create_stream("refunds")
    stranger = orders.key("listen:*", client="stranger")
    [mine, elsewhere, gone] = orders.register(
        registration(), {**registration(), "streams": ["refunds"]}, registration()
    )
    [theirs] = orders.register(registration(), key=stranger)
    hub.call("DELETE", f"/v1/registrations/{gone['id']}", key=orders.admin)
    async with session(hub, orders.admin) as reader:
        for wrong in (elsewhere["id"], theirs["id"], gone["id"], 2**62):
            answer = await reader.ask("orders", registrations=[mine["id"], wrong])
            assert (answer["op"], answer["code"]) == ("error", "unknown_registration"), answer
            assert answer["position"] == {"field": "registrations"}
        both = await reader.ask("orders", registrations=[mine["id"]], attributes={"customer": 1})
        assert (both["code"], both["position"]) == ("invalid_field", {"field": "registrations"})
        await reader.listen("orders", registrations=[mine["id"]])


async def test_a_listen_with_registrations_survives_the_loss_of_its_process(
    hub: LiveHub, orders: LiveZone
) -> None:
    [one] = orders.register(registration(customer=1))
    async with orders.client() as client:
        orders.emit("orders", [order(1)])
        found = client.listen("orders", registrations=[one["id"]], start="oldest")
        first = await anext(found)
        hub.web[0].kill()
        hub.web[0].start()
        orders.emit("orders", [order(2), order(1)])
        second = await anext(found)
    assert [(d.sequence, d.registrations) for d in (first, second)] == [
        (1, (one["id"],)),
        (3, (one["id"],)),
    ]
