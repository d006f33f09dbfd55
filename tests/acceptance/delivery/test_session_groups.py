"""Session groups: every member gets what matches the group's registrations (RDY-08)."""

import asyncio

import pytest

from tests.acceptance.consumers import (
    SHOP,
    acknowledge,
    ask,
    change,
    connect,
    create_group,
    create_session,
    numbers,
)
from tests.acceptance.matched_streams import match_work, wait_equal
from tests.acceptance.wire import EVENT, numbered, session
from tests.live import LiveHub, LiveZone

MEMBERS = ("one", "two", "three")


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders", matching="scan")  # no other matcher of the hub works this way
    return zone


@pytest.mark.req("RDY-08", "RDY-32")
async def test_three_members_get_an_event_that_was_evaluated_once(
    hub: LiveHub, orders: LiveZone
) -> None:
    """On three sockets of one process. Changing the group's window changes all three. In causal
    order they need every event, and so do not rely on the stream's router to match them.
    """
    group = create_group(orders, order="causal")
    for name in MEMBERS:
        create_session(orders, name, group="g")
    [made] = orders.register({**SHOP, "session_group": "g"})
    before = match_work(hub, ["listeners"], "scan").touched
    async with (
        session(hub, orders.admin) as one,
        session(hub, orders.admin) as two,
        session(hub, orders.admin) as three,
    ):
        readers = dict(zip(MEMBERS, (one, two, three), strict=True))
        for name, reader in readers.items():
            await connect(reader, name)
        orders.emit("orders", EVENT)
        for name, reader in readers.items():
            [event] = await reader.events(1)
            assert (event["session"], event["sequence"]) == (name, 1)
            assert event["registrations"] == [made["id"]]
        change(orders, group, of="session-groups", window=1)
        for reader in readers.values():
            assert (await reader.hear_op("changed"))["window"] == 1
        orders.emit("orders", {**EVENT, "destinations": ["tester/two"]})
        await two.say("ack", session="two", stream="orders", sequence=1)
        assert await numbers(two, 1) == [2]
        for name in ("one", "three"):
            await acknowledge(readers[name], through=1, name=name)
            assert await readers[name].nothing_waits()
    expected = before + 2  # events, not deliveries
    wait_equal(lambda: match_work(hub, ["listeners"], "scan").touched, expected)


async def test_members_at_different_positions_share_a_matcher(
    hub: LiveHub, orders: LiveZone
) -> None:
    """One was away while registrations changed; its events match as they did then."""
    create_group(orders)
    for name in ("one", "two"):
        create_session(orders, name, group="g")
    [made] = orders.register({**SHOP, "attributes": {"n": 1}, "session_group": "g"})
    path = f"/v1/registrations/{made['id']}"
    async with session(hub, orders.admin) as one, session(hub, orders.admin) as two:
        await connect(one, "one")
        orders.emit("orders", numbered(1, 3))
        assert await numbers(one, 1) == [1]
        await acknowledge(one, through=1, name="one")
        assert hub.call("PATCH", path, {"attributes": {"n": 3}}, key=orders.admin).status == 200
        orders.emit("orders", numbered(1, 3))
        assert await numbers(one, 1) == [6]
        await connect(two, "two")
        assert await numbers(two, 2) == [1, 6]
        orders.emit("orders", numbered(1, 3))
        assert await numbers(one, 1) == await numbers(two, 1) == [9]


async def test_a_member_that_joins_gets_what_comes_then_and_one_that_leaves_nothing(
    hub: LiveHub, orders: LiveZone
) -> None:
    create_group(orders)
    made = create_session(orders, "one")
    orders.register({**SHOP, "session_group": "g"})
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin) as reader:
        assert (await connect(reader, "one"))["streams"] == []
        change(orders, made, group="g")
        again = await reader.hear_op("connected")
        assert [stream["stream"] for stream in again["streams"]] == ["orders"]
        orders.emit("orders", EVENT)
        assert await numbers(reader, 1) == [2]
        await acknowledge(reader, through=2, name="one")
        change(orders, made, group=None)
        await reader.hear_op("connected")
        orders.emit("orders", EVENT)
        assert await reader.nothing_waits()


async def test_a_group_is_disconnected_as_a_whole(hub: LiveHub, orders: LiveZone) -> None:
    group = create_group(orders)
    for name in MEMBERS:
        create_session(orders, name, group="g")
    orders.register({**SHOP, "session_group": "g"})
    async with session(hub, orders.admin) as reader:
        for name in MEMBERS:
            await connect(reader, name)
        change(orders, group, of="session-groups", disconnected=True)
        ended = [await reader.hear_op("disconnected") for _ in MEMBERS]
        assert {(one["session"], one["reason"]) for one in ended} == {
            (name, "request") for name in MEMBERS
        }
        orders.emit("orders", EVENT)
        assert (await ask(reader, "one"))["code"] == "session_disconnected"
        change(orders, group, of="session-groups", disconnected=False)
        for name in MEMBERS:
            await connect(reader, name)
        # those of the first members may come before the last one is connected
        received = [one for one in reader.skipped if one["op"] == "event"]
        received += await reader.events(3 - len(received))
        assert {(event["session"], event["sequence"]) for event in received} == {
            (name, 1) for name in MEMBERS
        }


async def test_a_hundred_changes_do_not_confuse_members_that_match_meanwhile(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Members load, match and acknowledge at the same time, in both processes."""
    create_group(orders)
    for name in MEMBERS:
        create_session(orders, name, group="g")
    [made] = orders.register({**SHOP, "attributes": {"n": 0}, "session_group": "g"})
    path = f"/v1/registrations/{made['id']}"
    async with (
        session(hub, orders.admin) as one,
        session(hub, orders.admin) as two,
        session(hub, orders.admin, web=1) as three,
    ):
        readers = dict(zip(MEMBERS, (one, two, three), strict=True))
        for name, reader in readers.items():
            await connect(reader, name)
        receiving = [asyncio.create_task(numbers(reader, 50)) for reader in readers.values()]
        for n in range(1, 51):
            await asyncio.to_thread(
                hub.call, "PATCH", path, {"attributes": {"n": n}}, key=orders.admin
            )
            await asyncio.to_thread(orders.emit, "orders", numbered(n - 1, n + 1))
        for found in await asyncio.gather(*receiving):
            assert found == [3 * n - 1 for n in range(1, 51)]
