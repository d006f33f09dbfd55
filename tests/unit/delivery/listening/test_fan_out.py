"""The slices of a pass: what may happen between two of them."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from delivery.listening.fan_out import FanOuts, HeadReader, Place
from delivery.listening.frames import JsonFrames
from delivery.listening.protocol import ListenerFilter, ListenerState
from delivery.listening.reader import Reader
from eventhub.access.authorizer import Authorizer
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.read import Position
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import Cursor, StoredEvent

LISTENERS = 100
PAYLOAD = encode(Event(domain="shop", type="order.placed", attributes={}))


class QuietReader(Reader):
    """A reader whose rights never change."""

    def resume_message(self) -> bytes:
        return b""


class Collector:
    """A listener at the head, its waker, and the connection that gets its frames."""

    variant = "collector"

    def __init__(self, world: "Passes", filter: ListenerFilter) -> None:
        self.state = ListenerState("a", "orders", filter)
        self.cursor = Cursor("s", 0)
        self.state.start(Position(self.cursor, 0))
        self.received: list[int] = []
        self.prev: list[int] = []  # of what was received
        self.takes = True
        self.turns = 0
        principal: Any = SimpleNamespace(expires_at_us=None)
        reader = QuietReader(world.authorizer, SystemClock(), "", principal)
        self.place = Place(self, HeadReader(reader, JsonFrames(), self), self)

    def pass_to(self, cursor: Cursor, delivered_events: int) -> None:
        self.cursor = cursor

    def set(self) -> None:
        self.turns += 1

    def prepare(self, frames: Sequence[Any]) -> list[dict[str, Any]]:
        return [orjson.loads(frame) for frame in frames]

    def write_prepared(self, prepared: list[dict[str, Any]]) -> bool:
        if self.takes:
            self.received += [message["sequence"] for message in prepared]
            self.prev += [message["prev"] for message in prepared]
        return self.takes


class Passes:
    """A ring with listeners at its head, whose passes run a few listeners at a time."""

    def __init__(self) -> None:
        self.authorizer = cast(Authorizer, SimpleNamespace(changes=0, fresh=lambda: True))
        types: Any = SimpleNamespace(evolved=lambda zone_id: None)
        self.fan_outs = FanOuts(self.authorizer, SystemClock(), types)
        self.ring = Ring(Cursor("s", 0), bytes_max=1 << 20)

    def add(self, filter: ListenerFilter | None = None) -> Collector:
        """Add a listener; it is at the head."""
        made = Collector(self, filter or ListenerFilter())
        made.cursor = self.ring.head
        self.fan_outs.add(self.ring, None, made.place)
        made.place.at_head = True
        return made

    def push(self, *sequences: int) -> None:
        mask = DEFAULT_MASK
        self.ring.push([StoredEvent("s", each, mask, 0, PAYLOAD) for each in sequences])


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    monkeypatch.setattr(limits, "FAN_OUT_SLICE_S", 0.0)
    monkeypatch.setattr(limits, "FAN_OUT_STEP", 16)
    return Passes()


async def rounds() -> None:
    """Let all slices run."""
    for _ in range(LISTENERS):
        await asyncio.sleep(0)


async def test_events_that_come_between_two_slices_follow_in_order(passes: Passes) -> None:
    all_of_them = [passes.add() for _ in range(LISTENERS)]
    passes.push(1)
    await asyncio.sleep(0)
    assert all_of_them[0].received == [1] and not all_of_them[-1].received, "one slice has run"
    passes.push(2, 3)
    await rounds()
    assert [one.received for one in all_of_them] == [[1, 2, 3]] * LISTENERS
    assert not any(one.turns for one in all_of_them)


async def test_more_events_than_one_write_takes_follow_at_once(passes: Passes) -> None:
    one = passes.add()
    count = 3 * limits.FRAMES_PER_SLICE_MAX
    passes.push(*range(1, count + 1))
    await rounds()
    assert one.received == list(range(1, count + 1))
    assert not one.turns


async def test_a_listener_that_ends_between_two_slices_gets_nothing_more(passes: Passes) -> None:
    all_of_them = [passes.add() for _ in range(LISTENERS)]
    passes.push(1)
    await asyncio.sleep(0)
    passes.fan_outs.remove(all_of_them[-1].place)
    new = passes.add()
    await rounds()
    assert [one.received for one in all_of_them] == [[1]] * (LISTENERS - 1) + [[]]
    assert (new.received, new.turns) == ([], 0), "it started after the event"
    passes.push(2)
    await rounds()
    assert new.received == [2] and not all_of_them[-1].turns


async def test_a_restored_database_between_two_slices_ends_the_pass(passes: Passes) -> None:
    """The rest takes its own turn, and gets the events of the new history."""
    all_of_them = [passes.add() for _ in range(LISTENERS)]
    passes.push(1)
    await asyncio.sleep(0)
    passes.ring.distrust()
    passes.ring.skip_to(Cursor("s", 0))
    await rounds()
    reached = [one for one in all_of_them if one.received]
    assert 0 < len(reached) < LISTENERS
    assert all(one.turns for one in all_of_them)
    assert not any(one.place.at_head for one in all_of_them)


async def test_an_event_that_cannot_be_read_sends_all_to_their_own_turns(passes: Passes) -> None:
    """The pass raised in the event loop, and no later event was delivered."""
    one = passes.add()
    domains = ListenerFilter(zone="a zone, so that the event is decoded")
    other = passes.add(domains)
    passes.ring.push([StoredEvent("s", 1, DEFAULT_MASK, 0, b"\xff\xff")])
    await rounds()
    assert other.turns and not other.received
    assert not other.place.at_head and not one.place.at_head
    for each in (one, other):
        each.cursor, each.place.at_head = passes.ring.head, True
    passes.push(2)
    await rounds()
    assert one.received[-1] == other.received[-1] == 2


async def test_a_listener_that_cannot_be_sent_an_event_takes_a_turn_alone(passes: Passes) -> None:
    one, changed, slow, full, waiting = (passes.add() for _ in range(5))
    changed.place.to.reader._changes = -1  # its key was checked before the last change of a key
    slow.takes = False
    full.state = ListenerState("a", "orders", ListenerFilter(), window=1)
    full.state.report([StoredEvent("s", 0, DEFAULT_MASK, 0, PAYLOAD)])
    waiting.place.to.reader.sending = True
    passes.push(1)
    await rounds()
    assert (one.received, one.turns) == ([1], 0)
    for other in (changed, slow, full, waiting):
        assert (other.received, other.turns, other.place.at_head) == ([], 1, False)


async def test_a_listener_that_knows_its_position_gets_a_frame_of_its_own(passes: Passes) -> None:
    one, other = passes.add(ListenerFilter(mask=1)), passes.add(ListenerFilter(mask=1))
    passes.push(1, 2)
    await rounds()
    other.state.position(other.cursor)
    passes.ring.push([StoredEvent("s", 3, 1, 0, PAYLOAD)])
    await rounds()
    assert (one.prev, other.prev) == ([0], [2])
