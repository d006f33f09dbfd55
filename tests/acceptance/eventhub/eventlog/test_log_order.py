"""One order for all readers, replay without gap or duplicate, and resume (EMC-01, 06, 07,
08, 41).
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from eventhub_client.remote import HubClient
from eventhub_client.types import Cursor, Delivered, HubProblem, Start

from delivery.listening.catchup import CatchUpScheduler
from delivery.listening.fan_out import FanOuts
from delivery.listening.in_process import LocalHub
from delivery.listening.listener_recorder import recording_listeners
from delivery.listening.services import ListenerServices
from delivery.listening.version_loader import VersionLoader
from eventhub.access.authorizer import Authorizer
from eventhub.base.clock import SystemClock
from eventhub.eventlog.log import Log
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from registrations.interest.live import Closures
from tests.acceptance.wire import EVENT, Emitter, Session, numbered, session, until
from tests.live import LiveHub, LiveZone

AnyHub = LocalHub | HubClient
OpenHub = Callable[[LiveHub, LiveZone], AbstractAsyncContextManager[AnyHub]]


@asynccontextmanager
async def in_process(hub: LiveHub, zone: LiveZone) -> AsyncIterator[AnyHub]:
    async with Log.open(database_url=hub.database_url) as log:
        authorizer = Authorizer(log, secret="of this process", clock=SystemClock())
        following = asyncio.create_task(authorizer.run())
        try:
            await until(authorizer.fresh)
            feed = Feed(log)
            closures = Closures(log, feed)
            async with recording_listeners(hub.database_url) as record:
                clock, types = SystemClock(), TypeRegistry(log)
                services = ListenerServices(
                    log,
                    authorizer,
                    feed,
                    clock,
                    types,
                    closures,
                    record,
                    CatchUpScheduler(),
                    VersionLoader(log),
                    FanOuts(authorizer, clock, types),
                )
                yield LocalHub(services, zone.admin)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


@asynccontextmanager
async def over_the_network(hub: LiveHub, zone: LiveZone) -> AsyncIterator[AnyHub]:
    async with zone.client(web=1) as client:
        yield client


async def take(
    caller: AnyHub, stream: str, count: int, *, start: Start = "oldest", **interest: Any
) -> list[Delivered]:
    """Return the next events of a listener."""
    found: list[Delivered] = []
    async with aclosing(caller.listen(stream, start=start, **interest)) as events:  # type: ignore[type-var]
        async for delivered in events:
            found.append(delivered)
            if len(found) == count:
                break
    return found


async def refused(doing: Any) -> str:
    with pytest.raises(HubProblem) as caught:
        await doing
    return caught.value.code


@pytest.mark.req("EMC-01")
@pytest.mark.parametrize("opened", [in_process, over_the_network])
async def test_emit_and_listen_have_the_same_output_in_process_and_over_the_network(
    hub: LiveHub, zone: LiveZone, opened: OpenHub
) -> None:
    zone.create_stream("orders", segment_events_max=3)
    async with opened(hub, zone) as caller:
        receipts = [
            await caller.emit("orders", {**EVENT, "mask": 4, "attributes": {"n": 1}}),
            await caller.emit("orders", numbered(2, 5, mask=2)),
            await caller.emit("orders", {**EVENT, "id": {"sequence": 7}, "mask": 4}),
            await caller.emit("orders", {**EVENT, "id": {"sequence": 7}, "mask": 4}),
        ]
        ranges = [[(r.first, r.last) for r in receipt.ranges] for receipt in receipts]
        assert ranges == [[(1, 1)], [(2, 3), (4, 5)], [(6, 6)], []]
        [again] = receipts[3].duplicates
        assert (again.at, again.segment, again.sequence) == (0, *receipts[2].cursor)

        everything = await take(caller, "orders", 6)
        assert [(d.sequence, d.prev, d.liveness) for d in everything] == [
            (n, n - 1, "playback") for n in range(1, 7)
        ]
        assert everything[0].event == {
            **EVENT,
            "attributes": {"n": 1},
            "mask": "4",
            "source": "tester",
            "node": "tester",
        }
        assert everything[5].event["id"] == {
            "client": "tester",
            "timestamp": 0,
            "sequence": 7,
            "incarnation": 0,
        }
        assert [d.segment for d in everything[:3]] == [everything[0].segment] * 3
        assert everything[3].segment == receipts[1].ranges[1].segment != everything[0].segment

        masked = await take(caller, "orders", 2, mask=4)
        assert [(d.sequence, d.prev) for d in masked] == [(1, 0), (6, 1)]
        after = await take(caller, "orders", 2, start=everything[3].cursor)
        assert after == [one._replace(liveness="recovery") for one in everything[4:]]
        paired = await take(caller, "orders", 1, attributes={"n": 3}, domain="shop")
        assert [(d.sequence, d.prev) for d in paired] == [(3, 0)]

        live = asyncio.create_task(take(caller, "orders", 1, start=receipts[3].cursor))
        await caller.emit("orders", EVENT)
        assert [(d.sequence, d.prev) for d in await live] == [(7, 6)]


@pytest.mark.req("EMC-01")
@pytest.mark.parametrize("opened", [in_process, over_the_network])
async def test_refusals_are_the_same_in_process_and_over_the_network(
    hub: LiveHub, zone: LiveZone, opened: OpenHub
) -> None:
    zone.create_stream("orders", segment_events_max=3)
    async with opened(hub, zone) as caller:
        ahead = (await caller.emit("orders", numbered(1, 4))).ranges[0].segment
        codes = [
            await refused(caller.emit("orders", [])),
            await refused(caller.emit("orders", [EVENT, {**EVENT, "colour": "red"}])),
            await refused(caller.emit("nowhere", EVENT)),
            await refused(caller.emit("system", EVENT)),
            await refused(take(caller, "nowhere", 1)),
            await refused(take(caller, "orders", 1, body="opaque")),
            await refused(take(caller, "orders", 1, body_base64="b3BhcXVl")),
            await refused(take(caller, "orders", 1, colour="red")),
            await refused(take(caller, "orders", 1, mask=0)),
            await refused(take(caller, "orders", 1, start=Cursor(ahead, 4))),
        ]
        assert codes == [
            "empty_batch",
            "unknown_field",
            "unknown_stream",
            "forbidden",
            "unknown_stream",
            "body_not_filterable",
            "body_not_filterable",
            "unknown_field",
            "invalid_mask",
            "segment_mismatch",
        ]


@pytest.mark.req("EMC-06")
async def test_five_listeners_at_both_processes_see_identical_lists_of_1000_events(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders", segment_events_max=300)

    async def listener(number: int, ready: asyncio.Barrier) -> list[tuple[str, int, str]]:
        async with session(hub, zone.admin, web=number % 2) as reader:
            await reader.listen("orders")
            await ready.wait()
            return [
                (event["segment"], event["sequence"], event["event"]["name"])
                for event in await reader.events(1_000)
            ]

    def emit(thread: int) -> None:
        with Emitter(zone, web=thread % 2) as emitter:
            for number in range(250):
                emitter.numbers("orders", {**EVENT, "name": f"{thread}-{number}"})

    ready = asyncio.Barrier(6)
    listening = [asyncio.create_task(listener(number, ready)) for number in range(5)]
    await ready.wait()
    await asyncio.gather(*(asyncio.to_thread(emit, thread) for thread in range(4)))
    first, *others = await asyncio.gather(*listening)
    assert [sequence for _, sequence, _ in first] == list(range(1, 1_001))
    assert len({name for _, _, name in first}) == 1_000
    assert all(other == first for other in others)


def cursor(answer: dict[str, Any], sequence: int) -> dict[str, Any]:
    """Return the cursor of a sequence, from an emit's answer."""
    for run in answer["ranges"]:
        if run["first"] <= sequence <= run["last"]:
            return {"segment": run["segment"], "sequence": sequence}
    raise AssertionError(answer)


@pytest.mark.req("EMC-07")
@pytest.mark.parametrize("segment_events_max", [100_000, 64])
async def test_a_listener_from_101_during_100_emits_gets_101_to_600_once_each(
    hub: LiveHub, zone: LiveZone, segment_events_max: int
) -> None:
    zone.create_stream("orders", segment_events_max=segment_events_max)
    stored = zone.emit("orders", numbered(1, 500)).json

    def emit_more() -> None:
        with Emitter(zone, web=1) as emitter:
            for number in range(501, 601):
                emitter.numbers("orders", numbered(number, number))

    emitting = asyncio.create_task(asyncio.to_thread(emit_more))
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start=cursor(stored, 100))
        events = await reader.events(500)
        await emitting
        assert await reader.nothing_waits()
    assert [event["sequence"] for event in events] == list(range(101, 601))
    assert [event["prev"] for event in events] == list(range(100, 600))
    assert [event["event"]["attributes"]["n"] for event in events] == list(range(101, 601))


@pytest.mark.req("EMC-08")
async def test_after_a_cut_at_40_the_next_frame_of_a_new_websocket_is_41(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders", segment_events_max=40)
    zone.emit("orders", numbered(1, 100))
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest")
        last = (await reader.events(40))[-1]
        reader.socket.transport.abort()
    assert last["sequence"] == 40
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("orders", start={"segment": last["segment"], "sequence": 40})
        events = await reader.events(60)
    assert (events[0]["sequence"], events[0]["prev"]) == (41, 40)
    assert [event["sequence"] for event in events] == list(range(41, 101))


@pytest.mark.req("EMC-08")
async def test_the_client_resumes_after_its_websocket_is_cut(zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 60))
    seen: list[int] = []
    async with zone.client(web=1) as client:
        async for delivered in client.listen("orders", start="oldest"):
            seen.append(delivered.sequence)
            if len(seen) == 40:
                zone.hub.web[1].restart()
                zone.emit("orders", numbered(61, 80))
            if len(seen) == 80:
                break
    assert seen == list(range(1, 81))


@pytest.mark.req("EMC-41")
async def test_a_producer_whose_clock_is_an_hour_back_changes_neither_order_nor_replay(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    now = datetime.now(UTC)
    clocks = itertools.cycle([now, now - timedelta(hours=1), now + timedelta(hours=1)])
    for number, clock in zip(range(1, 13), clocks, strict=False):
        zone.emit("orders", numbered(number, number, time=clock.isoformat()))

    async def numbers(reader: Session, start: Any, count: int) -> list[tuple[int, int]]:
        await reader.listen("orders", name=f"of {count}", start=start)
        events = await reader.events(count)
        return [(event["sequence"], event["event"]["attributes"]["n"]) for event in events]

    async with session(hub, zone.admin) as reader:
        everything = await numbers(reader, "oldest", 12)
        assert everything == [(n, n) for n in range(1, 13)]
        segment = hub.call("GET", "/v1/streams/orders/segments/current", key=zone.admin).json
        place = {"segment": segment["uuid"], "sequence": 5}
        assert await numbers(reader, place, 7) == everything[5:]
    stored = hub.call("GET", "/v1/streams/orders/events/2", key=zone.admin).json
    assert datetime.fromisoformat(stored["time"]) == now - timedelta(hours=1)
    assert datetime.fromisoformat(stored["appended_at"]) > now - timedelta(minutes=1)
