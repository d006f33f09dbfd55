"""The outbox of the client library: events are queued on the client's disk, sent in order, and sent
again until the hub has stored them; ids and incarnations (FOX-08, 49, 51, 84).
"""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from eventhub_client.outbox import Outbox, OutboxOptions
from eventhub_client.outbox_file import OutboxBusy
from eventhub_client.sync import SyncOutbox
from eventhub_client.types import Delivered

from eventhub.base.clock import ManualClock
from tests.acceptance.cut import Way, way
from tests.acceptance.wire import EVENT, until
from tests.live import LiveHub, LiveZone

QUICK = OutboxOptions(interval_s=0.05, timeout_s=5.0)
WAIT_S = 30.0


def numbered(*numbers: int) -> list[dict[str, Any]]:
    return [{**EVENT, "attributes": {"n": n}} for n in numbers]


async def stored(zone: LiveZone, stream: str, count: int) -> list[Delivered]:
    """Return the `count` events of a stream, after checking that there are no more."""
    found: list[Delivered] = []
    async with (
        zone.client() as reader,
        aclosing(reader.listen(stream, start="oldest")) as events,  # type: ignore[type-var]
    ):
        async for delivered in events:
            found.append(delivered)
            if len(found) == count:
                break
        current = await reader.call("GET", f"/v1/streams/{stream}/segments/current")
        assert current["last"] == count, "and nothing else"
    return found


def values(events: list[Delivered]) -> list[int]:
    return [delivered.event["attributes"]["n"] for delivered in events]


@pytest.mark.req("FOX-49")
async def test_events_emitted_offline_are_stored_in_order_with_their_ids_after_reconnection(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("fox")
    terms = QUICK._replace(application=("till",))
    async with way(hub, cut=True) as between:
        async with Outbox(tmp_path / "box", between.url, zone.admin, terms) as outbox:
            ids = [(await outbox.emit("fox", event))[0] for event in numbered(1, 2)]
            assert (await outbox.status()).pending == 2
        async with Outbox(tmp_path / "box", between.url, zone.admin, QUICK) as outbox:
            ids += await outbox.emit("fox", numbered(3)[0])
            assert not (await outbox.flush(0.2)).attached
            await between.mend()
            assert (await outbox.flush(WAIT_S)).pending == 0
            profile = outbox.profile
    events = await stored(zone, "fox", 3)
    assert values(events) == [1, 2, 3]
    assert [e.event["id"] for e in events] == [{"client": "tester", **id.wire()} for id in ids]
    assert {e.event["application"][0] for e in events} == {"till"}
    assert (profile.application, profile.node) == (("till",), between.url)
    assert (profile.ip, profile.address) == ("127.0.0.1", between.url.removeprefix("http://"))


@pytest.mark.req("FOX-51")
async def test_the_incarnation_rises_with_each_reconnection_and_persists(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("fox")
    path = tmp_path / "box"
    async with way(hub) as between:
        async with Outbox(path, between.url, zone.admin, QUICK) as outbox:
            for number in (1, 2, 3):
                assert outbox.profile.incarnation == number
                await outbox.emit("fox", numbered(number)[0])
                assert (await outbox.flush(WAIT_S)).pending == 0
                if number < 3:
                    await lose(outbox, between)
        async with Outbox(path, between.url, zone.admin, QUICK) as outbox:
            assert outbox.profile.incarnation == 4
    found = [e.event["id"]["incarnation"] for e in await stored(zone, "fox", 5)]
    assert found == [1, 1, 2, 2, 3], "an event emitted before a reconnection keeps its incarnation"


async def lose(outbox: Outbox, between: Any) -> None:
    """Cut the connection, notice it by an emit, and restore it."""
    await between.cut()
    await outbox.emit("fox", numbered(0)[0])
    assert (await outbox.flush(0.3)).pending == 1
    await between.mend()
    assert (await outbox.flush(WAIT_S)).pending == 0


@pytest.mark.req("FOX-84")
async def test_an_event_is_stored_once_though_both_web_processes_crash_before_their_answers(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    """Each web process in turn receives the event, stores it or knows that it is stored, and is
    killed before its answer arrives. The outbox sends the event again until an answer says that it
    is stored.
    """
    zone.create_stream("fox")
    one, two = hub.web
    try:
        async with (
            way(hub, web=1) as between,
            Outbox(tmp_path / "box", between.url, zone.admin, QUICK) as outbox,
        ):
            between.swallow = two.kill
            await outbox.emit("fox", numbered(1, 2))
            await until(lambda: between.swallowed == 1)
            assert values(await stored(zone, "fox", 2)) == [1, 2], "stored, not acknowledged"
            between.swallow = one.kill
            between.lead(one.url)
            await until(lambda: between.swallowed == 2)
            await outbox.emit("fox", numbered(3)[0])
            assert (await outbox.flush(0.3)).pending == 3
            for web in hub.web:
                web.start(wait=False)
            one.wait_ready()
            assert (await outbox.flush(WAIT_S)).pending == 0
            assert posts(between) >= 3
    finally:
        for web in hub.web:
            if not web.running:
                web.start(wait=False)
            web.wait_ready()
    assert values(await stored(zone, "fox", 3)) == [1, 2, 3]


@pytest.mark.req("FOX-84")
async def test_silence_sends_again_at_3_and_6_and_the_answer_at_7_ends_it(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("fox")
    clock, interval_s = ManualClock(), 0.05
    terms = OutboxOptions(interval_s=interval_s, timeout_s=3 * interval_s, clock=clock)
    async with (
        way(hub) as between,
        Outbox(tmp_path / "box", between.url, zone.admin, terms) as outbox,
    ):
        between.speaking.clear()
        await outbox.emit("fox", numbered(1)[0])
        sent = {0: 1, 3: 2, 6: 3}
        for tick in range(10):
            if tick == 7:
                between.speaking.set()
                assert (await outbox.flush(WAIT_S)).pending == 0
            if tick in sent:
                await until(lambda: posts(between) == sent[tick])  # noqa: B023
            else:  # nothing more, though the sender looks at the clock
                await outbox.flush(2 * interval_s)
            assert posts(between) == max(count for at, count in sent.items() if at <= tick)
            clock.advance_s(interval_s)
    assert values(await stored(zone, "fox", 1)) == [1]


def posts(between: Way) -> int:
    """Return the number of emits that went to the hub."""
    return between.sent.count(b"POST /v1/streams/fox/events")


_EMITTER = """
import asyncio, sys
from pathlib import Path
from eventhub_client.outbox import Outbox, OutboxOptions

async def emit(path, url, key):
    options = OutboxOptions(interval_s=0.05, timeout_s=5.0)
    async with Outbox(Path(path), url, key, options) as outbox:
        for n in range(1, 1_000_000):
            event = {"domain": "shop", "type": "order.placed", "attributes": {"n": n}}
            [id] = await outbox.emit("fox", event)
            print(id.timestamp_us, id.incarnation, id.sequence, flush=True)

asyncio.run(emit(*sys.argv[1:]))
"""


@pytest.mark.req("FOX-08")
async def test_after_a_kill_the_ids_are_new_and_no_event_is_deemed_a_duplicate(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    """A process that emits is killed with some events stored and some on its disk only. A new life
    on the same file has a later timestamp and a higher incarnation; one that lost the file starts
    again at incarnation 1, with a later timestamp.
    """
    zone.create_stream("fox")
    path = tmp_path / "box"
    async with way(hub) as between:
        command = [sys.executable, "-c", _EMITTER, str(path), between.url, zone.admin]
        child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        lines = [await child.stdout.readline() for _ in range(10)]
        await until(lambda: last(zone) > 0)
        await between.cut()
        lines += [await child.stdout.readline() for _ in range(10)]
        child.kill()
        lines += (await child.stdout.read()).splitlines()
        await child.wait()
    killed = [tuple(map(int, line.split())) for line in lines]
    ids = []
    for box in (path, tmp_path / "lost"):
        async with Outbox(box, hub.url, zone.admin, QUICK) as outbox:
            if box == path:
                assert (await outbox.status()).pending > 0, "some were on the disk only"
            ids += await outbox.emit("fox", numbered(0, 0))
            assert (await outbox.flush(WAIT_S)).pending == 0
    again, lost = ids[0], ids[2]
    assert min(again.timestamp_us, lost.timestamp_us) > max(time for time, _, _ in killed)
    assert (again.incarnation, lost.incarnation) == (2, 1)
    assert [(id.timestamp_us, id.sequence) for id in ids] == [
        (life.timestamp_us, n) for life in (again, lost) for n in (1, 2)
    ]
    events = await stored(zone, "fox", last(zone))
    count = len(events) - 4  # one more than was printed, if the kill struck between
    assert count in (len(killed), len(killed) + 1)
    assert values(events) == [*range(1, count + 1), 0, 0, 0, 0], "each of both lives once, in order"
    found = [tuple(event.event["id"][name] for name in _ID) for event in events]
    assert found[: len(killed)] == killed
    assert len({*found}) == len(found)


_ID = ("timestamp", "incarnation", "sequence")


def last(zone: LiveZone) -> int:
    """Return the last sequence of the stream."""
    return int(zone.hub.call("GET", "/v1/streams/fox", key=zone.admin).json["last"])


async def test_an_event_that_the_hub_always_refuses_is_dead_lettered_and_blocks_nothing(
    zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("fox")
    reported: list[int] = []
    terms = QUICK._replace(on_dead_letter=lambda dead: reported.append(dead.number))
    async with Outbox(tmp_path / "box", zone.hub.url, zone.admin, terms) as outbox:
        poison = {"domain": "shop", "attributes": {"n": 2}}
        await outbox.emit("fox", [*numbered(1), poison, *numbered(3)])
        status = await outbox.flush(WAIT_S)
        assert (status.pending, status.dead_letters) == (0, 1)
        [dead] = await outbox.dead_letters()
        assert reported == [dead.number]
        assert dead.problem["code"] == "missing_field"
        assert (dead.stream, dead.event["attributes"]) == ("fox", {"n": 2})
        await outbox.requeue(dead.number, {**poison, "type": "order.placed"})
        assert (await outbox.flush(WAIT_S)).dead_letters == 0
    assert values(await stored(zone, "fox", 3)) == [1, 3, 2]


async def test_events_of_an_unknown_stream_are_held_and_other_streams_continue(
    zone: LiveZone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventhub.base.limits.OUTBOX_HELD_S", 0.1)
    zone.create_stream("fox")
    async with Outbox(tmp_path / "box", zone.hub.url, zone.admin, QUICK) as outbox:
        await outbox.emit("later", numbered(1)[0])
        await outbox.emit("fox", numbered(1)[0])
        status = await outbox.flush(WAIT_S)
        while "later" not in status.blocked:
            status = await outbox.flush(0.1)
        assert (status.pending, status.blocked["later"].code) == (1, "unknown_stream")
        zone.create_stream("later")
        async with zone.client() as reader:
            async for delivered in reader.listen("later", start="oldest"):
                assert delivered.event["attributes"] == {"n": 1}
                break
    assert values(await stored(zone, "fox", 1)) == [1]


async def test_an_event_whose_id_is_below_the_window_gets_a_new_id(
    zone: LiveZone, tmp_path: Path
) -> None:
    """Another copy of the outbox's file has issued ids far ahead."""
    zone.create_stream("fox")
    async with (
        way(zone.hub, cut=True) as between,
        Outbox(tmp_path / "box", between.url, zone.admin, QUICK) as outbox,
    ):
        [id] = await outbox.emit("fox", numbered(1)[0])
        ahead = {**id.wire(), "sequence": id.sequence + 5_000}
        assert zone.emit("fox", {**EVENT, "attributes": {"n": 0}, "id": ahead}).status == 200
        await between.mend()
        assert (await outbox.flush(WAIT_S)).pending == 0
    assert values(await stored(zone, "fox", 2)) == [0, 1]


async def test_a_second_outbox_on_one_file_is_refused(zone: LiveZone, tmp_path: Path) -> None:
    async with Outbox(tmp_path / "box", zone.hub.url, zone.admin):
        with pytest.raises(OutboxBusy, match="in use by process"):
            async with Outbox(tmp_path / "box", zone.hub.url, zone.admin):
                pass


def test_the_synchronous_outbox_has_the_same_calls(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("fox")
    with SyncOutbox(tmp_path / "box", hub.url, zone.admin, QUICK) as outbox:
        [id] = outbox.emit("fox", numbered(1)[0])
        outbox.emit("fox", {"domain": "shop"})
        status = outbox.flush(WAIT_S)
        assert (status.pending, status.dead_letters) == (0, 1)
        [dead] = outbox.dead_letters()
        outbox.requeue(dead.number, numbered(2)[0])
        assert outbox.flush(WAIT_S) == outbox.status()
        assert outbox.drop(dead.number) is None
        assert outbox.save_profile(interests=({"stream": "fox"},)).incarnation == 1
    with SyncOutbox(tmp_path / "box", hub.url, zone.admin) as outbox:
        assert outbox.profile.interests == ({"stream": "fox"},)
        with pytest.raises(OutboxBusy):
            SyncOutbox(tmp_path / "box", hub.url, zone.admin).__enter__()
    found = asyncio.run(stored(zone, "fox", 2))
    assert values(found) == [1, 2]
    assert found[0].event["id"] == {"client": "tester", **id.wire()}


async def test_an_event_with_an_id_is_refused_before_it_is_queued(
    zone: LiveZone, tmp_path: Path
) -> None:
    async with Outbox(tmp_path / "box", zone.hub.url, zone.admin) as outbox:
        with pytest.raises(ValueError, match="Leave out `id`"):
            await outbox.emit("fox", [{**EVENT, "id": {"sequence": 1}}])
        assert (await outbox.status()).pending == 0
