"""Session groups that share: each event goes to one member, by key in order."""

import asyncio
import random
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.acceptance.consumers import (
    SHOP,
    acknowledge,
    change,
    connect,
    create_group,
    create_session,
    numbers,
)
from tests.acceptance.pulls import PULL, acknowledged, end_visibility, pull, pulled
from tests.acceptance.wire import EVENT, numbered, session
from tests.live import LiveHub, LiveZone

MEMBERS = ("one", "two", "three")
EVENTS, KEYS = 120, 5


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def sharing(zone: LiveZone, **more: object) -> dict[str, object]:
    """Create a group whose three members share the events of the shop."""
    group = create_group(zone, sharing="one", **more)
    for name in MEMBERS:
        create_session(zone, name, group="g")
    zone.register({**SHOP, "session_group": "g"})
    return group


def keyed(count: int, keys: int) -> list[dict[str, object]]:
    return [{**EVENT, "attributes": {"n": n, "customer": n % keys}} for n in range(1, count + 1)]


async def test_each_event_goes_to_one_member_within_its_window(
    hub: LiveHub, orders: LiveZone
) -> None:
    """A slow member has only its window; the position of the group is one."""
    group = sharing(orders, window=2)
    assert (group["sharing"], group["share_by"], group["sessions"]) == ("one", "", 0)
    orders.emit("orders", numbered(1, 9))
    assert pulled(orders, 2, "one") == [(1, 1), (2, 1)]
    assert pull(orders, "one", max=5)["events"] == []
    assert pulled(orders, 2, "two", web=1) == [(3, 1), (4, 1)]
    assert pulled(orders, 1, "three") == [(5, 1)]
    assert pull(orders, "two", max=0, web=1, **acknowledged(1, through=4))["acknowledged"] == 2
    assert pulled(orders, 2, "two", web=1) == [(6, 1), (7, 1)]
    end_visibility(hub, 2)
    assert pulled(orders, 1, "three") == [(2, 2)]
    shown = hub.call("GET", f"/v1/session-groups/{group['id']}", key=orders.admin).json
    assert shown["sessions"] == 3
    listed = hub.call("GET", "/v1/sessions", key=orders.admin).json["items"]
    assert sorted(one["name"] for one in listed) == sorted(MEMBERS)


async def test_a_member_that_leaves_or_is_deleted_gives_its_events_back(
    hub: LiveHub, orders: LiveZone
) -> None:
    sharing(orders)
    members = {
        one["name"]: one for one in hub.call("GET", "/v1/sessions", key=orders.admin).json["items"]
    }
    orders.emit("orders", numbered(1, 4))
    assert pulled(orders, 2, "one") == [(1, 1), (2, 1)]
    assert pulled(orders, 2, "two", web=1) == [(3, 1), (4, 1)]
    change(orders, members["one"], group=None)
    assert pulled(orders, 2, "three") == [(1, 2), (2, 2)]
    path = f"/v1/sessions/{members['two']['id']}"
    assert hub.call("DELETE", path, key=orders.admin).status == 204
    assert pulled(orders, 2, "three") == [(3, 2), (4, 2)]
    assert pull(orders, "one")["events"] == []


class Work:
    """Three members that take batches at random, and acknowledge, forget or give back what they
    have. Each batch is compared with what the others have and with what is acknowledged.
    """

    def __init__(self, zone: LiveZone, share_by: str) -> None:
        self.zone = zone
        self.share_by = share_by
        self.random = random.Random(7)
        self.done: set[int] = set()
        self.held: dict[str, list[int]] = {name: [] for name in MEMBERS}
        self.lost: set[int] = set()  # whose time was over, or that were given back
        self.webs = [0, 1]

    def pull(self, member: str, **body: Any) -> dict[str, Any]:
        return pull(self.zone, member, web=self.random.choice(self.webs), **body)

    def round(self) -> None:
        member = self.random.choice(MEMBERS)
        answer = self.pull(member, max=self.random.randint(1, 5), wait_s=0.3)
        for event in answer["events"]:
            self.check(member, event["sequence"], event["attempt"])
        held = self.held[member]
        if held:
            self.settle(member, held[: self.random.randint(1, len(held))])

    def check(self, member: str, sequence: int, attempt: int) -> None:
        assert sequence not in self.done, f"{sequence} came after it was acknowledged"
        assert (attempt > 1) == (sequence in self.lost), f"{sequence} came as attempt {attempt}"
        others = [one for name, held in self.held.items() if name != member for one in held]
        assert sequence not in others
        if self.share_by:
            earlier = set(range(sequence - KEYS, 0, -KEYS))
            assert earlier <= self.done | {*self.held[member]}, f"{sequence} came too early"
            assert not [one for one in others if (one - sequence) % KEYS == 0], "two have a key"
        self.lost.discard(sequence)
        self.held[member].append(sequence)
        self.held[member].sort()

    def settle(self, member: str, part: list[int]) -> None:
        choice = self.random.random()
        if choice < 0.6:
            answer = self.pull(member, max=0, **acknowledged(*part))
            assert answer["acknowledged"] == len(part)
            self.done.update(part)
        else:
            part = self.held[member]
            self.lost.update(part)
            if choice < 0.8:
                end_visibility(self.zone.hub, *part)
            else:
                back = {"stream": "orders", "sequences": part, "visibility_s": 0}
                assert self.pull(member, max=0, visibility=[back])["extended"] == len(part)
        self.held[member] = [one for one in self.held[member] if one not in part]


@pytest.mark.parametrize("share_by", ["", "customer"])
async def test_with_kills_and_timeouts_every_event_is_processed_and_keys_stay_in_order(
    hub: LiveHub, orders: LiveZone, share_by: str
) -> None:
    """At two processes, of which one is killed amid. An event comes again only after its time or
    when it was given back; by key never before an earlier one is acknowledged or in the same hands.
    """
    sharing(orders, window=7, share_by=share_by)
    orders.emit("orders", keyed(EVENTS, KEYS))
    work = Work(orders, share_by)
    rounds = 0
    while len(work.done) < EVENTS:
        rounds += 1
        assert rounds < 600, sorted(set(range(1, EVENTS + 1)) - work.done)
        if rounds == 12:
            hub.web[1].kill()
            work.webs = [0]
        work.round()
    if not hub.web[1].running:
        hub.web[1].start()
    assert rounds > 12
    assert pull(orders, "one")["events"] == []


async def test_a_busy_key_does_not_hold_up_others(hub: LiveHub, orders: LiveZone) -> None:
    sharing(orders, share_by="customer")
    busy = [{**EVENT, "attributes": {"customer": 1}}] * 60
    orders.emit("orders", [*busy, {**EVENT, "attributes": {"customer": 2}}])
    assert pulled(orders, 1, "one") == [(1, 1)]
    assert pulled(orders, 1, "two") == [(61, 1)]
    assert pulled(orders, 1, "one", **acknowledged(1)) == [(2, 1)]
    assert pull(orders, "two", max=5)["events"] == []


async def test_connected_members_share_and_one_that_leaves_gives_its_events_back(
    hub: LiveHub, orders: LiveZone
) -> None:
    """At two processes; each has its window, and the events that one had come to the other."""
    sharing(orders, window=2)
    async with session(hub, orders.admin) as one, session(hub, orders.admin, web=1) as two:
        connected = await connect(one, "one")
        assert (connected["streams"], connected["window"]) == ([], 2)
        orders.emit("orders", numbered(1, 5))
        first = await one.events(2)
        assert [(event["sequence"], event["attempt"]) for event in first] == [(1, 1), (2, 1)]
        assert (first[0]["session"], first[0]["stream"]) == ("one", "orders")
        assert await one.nothing_waits()
        await connect(two, "two")
        assert await numbers(two, 2) == [3, 4]
        await acknowledge(two, through=3, name="two")
        assert await numbers(two, 1) == [5]
        await acknowledge(one, 1, name="one")
        await acknowledge(two, 4, 5, name="two")
        await one.say("disconnect", session="one")
        assert (await one.hear_op("disconnected"))["reason"] == "stopped"
        [again] = await two.events(1)
        assert (again["sequence"], again["attempt"]) == (2, 2)
        await acknowledge(two, 2, name="two")
    assert pull(orders, "three")["events"] == []


async def test_a_replaced_member_neither_acknowledges_nor_gives_back_what_the_new_one_has(
    hub: LiveHub, orders: LiveZone
) -> None:
    sharing(orders, window=2)
    orders.emit("orders", numbered(1, 2))
    async with session(hub, orders.admin) as old, session(hub, orders.admin, web=1) as new:
        await connect(old, "one")
        assert await numbers(old, 2) == [1, 2]
        await connect(new, "one")
        assert await numbers(new, 2) == [1, 2]
        await old.say("ack", session="one", stream="orders", sequences=[1], id="late")
        assert (await old.hear_op("disconnected"))["reason"] == "replaced"
        assert [one for one in old.skipped if one["op"] == "acked"] == []
        assert pull(orders, "two")["events"] == []
        await new.say("disconnect", session="one")
        await new.hear_op("disconnected")
    assert pulled(orders, 2, "two") == [(1, 3), (2, 3)]


async def test_a_member_that_requests_no_answers_gets_everything(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It got some windows of events, then none: what it had claimed was sent with answers only."""
    sharing(orders, window=4)
    orders.emit("orders", numbered(1, 60))
    async with session(hub, orders.admin) as one:
        await connect(one, "one")
        for sequence in range(1, 61):
            assert await numbers(one, 1) == [sequence]
            await one.say("ack", session="one", stream="orders", sequences=[sequence])


async def test_events_of_a_member_that_lost_its_grant_go_to_another(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It had them until it disconnected, and could not acknowledge them."""
    sharing(orders)
    key = orders.key("listen:orders")
    async with session(hub, key) as reader:
        await connect(reader, "one")
        orders.emit("orders", numbered(1, 2))
        assert await numbers(reader, 2) == [1, 2]
        body = {"grants": [{"action": "listen", "streams": "other"}]}
        path = f"/v1/keys/{key.split('_')[1]}"
        assert hub.call("PATCH", path, body, key=orders.admin).status == 200
        found = await asyncio.to_thread(pull, orders, "two", wait_s=30)
        assert [(one["sequence"], one["attempt"]) for one in found["events"]] == [(1, 2), (2, 2)]


async def test_events_of_a_member_whose_process_is_killed_go_to_another(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Within seconds, when its claims end; by key in their order, before new events of the key."""
    sharing(orders, share_by="customer")
    try:
        with pytest.raises(ConnectionClosed):
            async with session(hub, orders.admin, web=1) as reader:
                await connect(reader, "one")
                orders.emit("orders", keyed(4, 2))
                assert await numbers(reader, 4) == [1, 2, 3, 4]
                await acknowledge(reader, 1, name="one")
                assert pull(orders, "two")["events"] == []
                hub.web[1].kill()
                await reader.hear()
        orders.emit("orders", keyed(6, 2)[4:])
        end_visibility(hub)
        async with session(hub, orders.admin) as reader:
            await connect(reader, "two")
            events = await reader.events(5)
            found = [(event["sequence"], event["attempt"]) for event in events]
            assert found == [(2, 2), (3, 2), (4, 2), (5, 1), (6, 1)]
    finally:
        hub.web[1].start()


def test_a_deleted_group_has_no_position_and_its_name_is_free(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Its position is that of a session with a name of its own."""
    group = create_group(orders, sharing="one")
    orders.register({**SHOP, "session_group": "g"})
    orders.emit("orders", numbered(1, 2))
    answer = hub.call("DELETE", f"/v1/session-groups/{group['id']}", key=orders.admin)
    assert answer.status == 204, answer
    sharing(orders)
    assert pull(orders, "one")["events"] == []
    orders.emit("orders", numbered(3, 3))
    assert pulled(orders, 1, "one") == [(3, 1)]


async def test_sharing_is_for_sessions_of_one_client_and_immutable(
    hub: LiveHub, orders: LiveZone
) -> None:
    group = create_group(orders, sharing="one", share_by="@key")
    path = f"/v1/session-groups/{group['id']}"
    for body, field in (
        ({"sharing": "every"}, "sharing"),
        ({"share_by": ""}, "share_by"),
        ({"order": "priority"}, "order"),
    ):
        answer = hub.call("PATCH", path, body, key=orders.admin)
        assert (answer.status, answer.json["position"]["field"]) == (400, field)
    orders.key("listen:*", client="other")
    body = {"name": "x", "kind": "consumer", "client": "other", "group": "g"}
    answer = hub.call("POST", "/v1/sessions", body, key=orders.admin)
    assert (answer.status, answer.json["position"]["field"]) == (400, "group")
    create_session(orders, "one", group="g")
    hub.call("DELETE", path, key=orders.admin).refused(409, "session_group_in_use")
    other = orders.key("listen:*", client="other")
    hub.call("POST", PULL.format("one"), {}, key=other).refused(404, "unknown_session")
