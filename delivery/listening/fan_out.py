"""The fan-out of new events: one pass over the listeners that are at the head of a stream. Plain
module.

New events are matched once for all listeners with the same filter, encoded once for all that get
the same frame, and written to their connections in the pass, without a task. A listener takes a
turn of its own, in its connection's task, if it is behind, has a snapshot, an expensive filter or
registrations; if its window has no room, its connection takes nothing, or its rights have to be
checked.

Concurrency contract: one event loop. A pass runs in slices; between two of them listeners come and
go. The pass moves the position only of a listener that is at the head, which is never while that
takes its own turn.
"""

import asyncio
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol

from delivery.listening.frames import EventHeader, Frame, FrameFormat
from delivery.listening.protocol import ListenerFilter, ListenerState
from delivery.listening.reader import Reader
from delivery.listening.restricted import is_restricted
from eventhub.access.authorizer import Authorizer
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.event_loop import Waker
from eventhub.base.logs import get_logger
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.types.registry import TypeRegistry, ZoneHierarchy

log = get_logger(__name__)


class DirectWriter(Protocol):
    """A connection to which prepared bytes are written without a task (eventhub/web/websocket.py,
    eventhub/http/messages.py).
    """

    variant: str  # writers with equal ones take the same prepared frames

    def prepare(self, frames: Sequence[Any]) -> Any:
        """Return frames as `write_prepared` takes them: bytes, if they are the same for all."""
        ...

    def write_prepared(self, prepared: Any) -> bool:
        """Write frames; return False, and write nothing, if the connection takes none now."""
        ...


class HeadReader(NamedTuple):
    """The receiving end of a listener. Without a writer it takes a turn for each matching event,
    and with `every_event` also for those that do not match.
    """

    reader: Reader
    form: FrameFormat[Any]
    writer: DirectWriter | None = None
    every_event: bool = False


class HeadListener(Protocol):
    """The part of a listener that the pass uses."""

    state: ListenerState
    cursor: Cursor

    def pass_to(self, cursor: Cursor, delivered_events: int) -> None:
        """Continue after a cursor: so many events up to it were delivered, no other matches."""
        ...


class Place:
    """The place of one listener in a fan-out."""

    __slots__ = ("at_head", "fan_out", "group", "kind", "listener", "to", "waker")

    def __init__(self, listener: HeadListener, to: HeadReader, waker: Waker) -> None:
        self.listener = listener
        self.to = to
        self.waker = waker
        self.at_head = False  # it has every event that its ring had, and waits for the next one
        # with those of an equal kind it shares frames after the same sequence
        variant, state = to.writer and to.writer.variant, listener.state
        self.kind = (variant, type(to.form), state.subject_json, state.signature)
        self.fan_out: FanOut
        self.group: _Group

    def is_due(self, batch: Sequence[StoredEvent]) -> bool:
        """Return whether the listener is at the head and before the end of a batch; wake one that
        is behind, unless it was removed.
        """
        if self.at_head:
            return bool(batch) and self.listener.cursor.sequence < batch[-1].sequence
        if self in self.group.places and not self.listener.state.full:
            self.waker.set()  # a full window is woken by an acknowledgement
        return False

    def note_taken(self, events: Sequence[StoredEvent], end: Cursor) -> None:
        """Note that its connection took the frames of these events, all that match up to a
        cursor.
        """
        count = len(events)
        if count:
            self.listener.state.report(events)
            self.to.reader.frames_taken += count
        self.listener.pass_to(end, count)

    def take_turn(self) -> None:
        """Have the listener take its own turn."""
        self.at_head = False
        self.waker.set()


class _Group:
    """The listeners whose filters select the same events, apart from who may see them."""

    __slots__ = ("key", "kinds", "places")

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self.kinds: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # each one once, to be compared
        self.places: dict[Place, None] = {}

    @property
    def filter(self) -> ListenerFilter:
        """The filter of one of the listeners, which learns types in its own turns."""
        return next(iter(self.places)).listener.state.filter


class _Prepared(NamedTuple):
    """What one write sends: prepared frames, and their size without headers."""

    frames: Any
    size: int


class FanOut:
    """The fan-out of one ring, which sets it as a waker."""

    def __init__(self, services: "FanOuts", ring: Ring, zone_id: int | None) -> None:
        self.ring = ring
        self.groups: dict[tuple[Any, ...], _Group] = {}
        self._services = services
        self._zone_id = zone_id
        self._loop = asyncio.get_running_loop()
        self._life = ring.life
        self._position = ring.next - 1  # the last sequence that the pass has taken
        self._steps: Iterator[None] | None = None  # of the pass that runs
        self._due = False  # another pass is to follow
        self._fresh = False  # authorisation is confirmed, for this slice of the pass
        self._now_us = 0

    def add(self, place: Place) -> None:
        """Add a listener, which takes its own turn first."""
        key = _key(place.listener.state.filter)
        place.fan_out = self
        place.group = group = self.groups.setdefault(key, _Group(key))
        place.kind = group.kinds.setdefault(place.kind, place.kind)
        place.group.places[place] = None

    def remove(self, place: Place) -> None:
        place.at_head = False
        del place.group.places[place]
        if not place.group.places:
            del self.groups[place.group.key]

    def set(self) -> None:
        """Have a pass run after the present callback."""
        self._due = True
        if self._steps is None:
            self._steps = self._pass()
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        """Run one slice of the pass."""
        until_s = monotonic() + limits.FAN_OUT_SLICE_S
        if self.ring.life != self._life:
            self._start_again()
            self._steps = self._pass()  # which wakes those that came since
        self._fresh = self._services.authorizer.fresh()
        self._now_us = self._services.clock.now_us()
        try:
            for _ in self._steps or ():
                if monotonic() >= until_s:
                    self._loop.call_soon(self._run)
                    return
        except Exception:  # of an event that cannot be read: each listener reports it
            log.exception("fan_out_failed")
            self._start_again()
        self._steps = None

    def _pass(self) -> Iterator[None]:
        """Take the ring's new events in batches until there are none; yield where other work may
        run.
        """
        while self._due:
            self._due = False
            batch = self._next_batch()
            for group in [*self.groups.values()]:
                yield from self._deliver(group, batch)

    def _next_batch(self) -> list[StoredEvent]:
        """Return the next events, within the bounds of one write. If they have left the ring, all
        listeners take their own turns.
        """
        ring = self.ring
        found = ring.after(self._position, limits.FRAMES_PER_SLICE_MAX)
        if found is None:
            self._start_again()
            return []
        size = 0
        for at, stored in enumerate(found):
            size += len(stored.payload)
            if size > limits.SOCKET_WRITE_BYTES_MAX and at:
                found = found[:at]
                break
        if found:
            self._position = found[-1].sequence
            self._due = self._due or self._position + 1 < ring.next
        return found

    def _start_again(self) -> None:
        """Have all listeners take their own turns, and continue at the end of the ring."""
        self._life, self._position = self.ring.life, self.ring.next - 1
        self._due = True
        for group in self.groups.values():
            for place in group.places:
                place.take_turn()

    def _deliver(self, group: _Group, batch: list[StoredEvent]) -> Iterator[None]:
        """Deliver a batch to the listeners of a group, so many at a time."""
        work: _MatchedBatch | None = None
        places = [*group.places]
        for at in range(0, len(places), limits.FAN_OUT_STEP):
            due = [one for one in places[at : at + limits.FAN_OUT_STEP] if one.is_due(batch)]
            if due:
                types = self._services.types.evolved(self._zone_id)
                work = work or _MatchedBatch(batch, group.filter, types)
                work.deliver(due, self._now_us if self._fresh else None)
            yield
        if work is not None and work.frames:
            metrics.SENT.add(work.frames, work.bytes)


class _MatchedBatch:
    """A batch of events for one group, matched and encoded once."""

    def __init__(self, batch: list[StoredEvent], filter: ListenerFilter, types: Any) -> None:
        self.frames = self.bytes = 0  # sent
        self._before = batch[0].sequence - 1
        self._end = batch[-1].cursor
        self._types = types
        self._selected = _select(batch, filter)  # None: types have to be loaded first
        self._restricted = any(map(is_restricted, self._selected or ()))
        self._visible: dict[tuple[Any, ...], list[StoredEvent]] = {}  # by audience
        self._known: dict[tuple[Any, ...], _Prepared] = {}
        self._prepared = _Prepared(None, 0)  # the frames of the last listener, and their key:
        self._kind: tuple[Any, ...] = ()
        self._last = 0
        self._audience: tuple[Any, ...] | None = None

    def deliver(self, places: Sequence[Place], now_us: int | None) -> None:
        """Send the events to listeners that may get them, and have the others take their own turns;
        without a time, all. Everything is written before anything is noted: a listener waits for
        the system calls of those before it, and for nothing else.
        """
        taken: list[tuple[Place, list[StoredEvent]]] = []
        try:
            for place in places:
                chosen = None
                if now_us is not None and place.to.reader.may_get(now_us):
                    chosen = self._written(place, now_us)
                if chosen is None:
                    place.take_turn()
                else:
                    taken.append((place, chosen))
        finally:
            for place, chosen in taken:
                place.note_taken(chosen, self._end)

    def _written(self, place: Place, now_us: int) -> list[StoredEvent] | None:
        """Write the events that a listener may see, and return them; None if it has to take its own
        turn.
        """
        listener, chosen = place.listener, self._selected
        if chosen is None or listener.cursor.sequence != self._before:
            return None
        state, audience = listener.state, None
        if self._restricted:
            audience = state.filter.audience
            chosen = self._for_audience(chosen, state.filter, now_us)
        if not chosen:
            return chosen
        writer, count = place.to.writer, len(chosen)
        if writer is None or self._before < state.started_head:
            return None
        if state.window is not None and not state.takes(count):
            return None
        last, kind = state.last_reported, place.kind
        if last != self._last or kind is not self._kind or audience != self._audience:
            self._prepared = self._frames_for(place, chosen, audience)
            self._last, self._kind, self._audience = last, kind, audience
        prepared = self._prepared
        if not writer.write_prepared(prepared.frames):
            return None
        self.frames += count
        self.bytes += prepared.size
        return chosen

    def _frames_for(
        self, place: Place, chosen: list[StoredEvent], audience: tuple[Any, ...] | None
    ) -> _Prepared:
        key = place.kind, place.listener.state.last_reported, audience
        found = self._known.get(key)
        if found is None:
            found = self._prepare(place, chosen)
            if len(self._known) < limits.FAN_OUT_FRAMES_KEPT_MAX:
                self._known[key] = found
        return found

    def _for_audience(
        self, selected: list[StoredEvent], filter: ListenerFilter, now_us: int
    ) -> list[StoredEvent]:
        """Return the events that a client may see, and that have not expired."""
        found = self._visible.get(filter.audience)
        if found is None:
            found = [
                stored
                for stored in selected
                if not is_restricted(stored) or filter.admits(stored, now_us)
            ]
            self._visible[filter.audience] = found
        return found

    def _prepare(self, place: Place, chosen: list[StoredEvent]) -> _Prepared:
        """Return the frames of the chosen events for a listener."""
        state, (_, form, writer, _) = place.listener.state, place.to
        assert writer is not None  # noqa: S101
        last, signature = state.last_reported, state.signature
        header = EventHeader(state.subject_json, last, "live", signature=signature)
        frames: list[Frame] = []
        for stored in chosen:
            if self._types:
                header.latest_version = self._types.newest_for(stored.event)
            frames.append(form.event(header, stored))
            header.prev = stored.sequence
        return _Prepared(writer.prepare(frames), sum(map(len, frames)))


class FanOuts:
    """The fan-outs of one process, by ring."""

    def __init__(self, authorizer: Authorizer, clock: Clock, types: TypeRegistry) -> None:
        self.authorizer = authorizer
        self.clock = clock
        self.types = types
        self._by_ring: dict[Ring, FanOut] = {}

    def add(self, ring: Ring, zone_id: int | None, place: Place) -> None:
        """Add a listener to a stream of a zone."""
        fan_out = self._by_ring.get(ring)
        if fan_out is None:
            fan_out = self._by_ring[ring] = FanOut(self, ring, zone_id)
            ring.wakers.add(fan_out)
        fan_out.add(place)

    def remove(self, place: Place) -> None:
        fan_out = place.fan_out
        fan_out.remove(place)
        if not fan_out.groups:
            fan_out.ring.wakers.discard(fan_out)
            del self._by_ring[fan_out.ring]


def _key(filter: ListenerFilter) -> tuple[Any, ...]:
    """Return equal keys only for filters that select the same events of a stream. Texts, because 1
    and true are equal in Python; an expensive filter, which may be long, has a key of its own.
    """
    costly = filter.cost > limits.FAN_OUT_FILTER_COST_MAX
    tree = id(filter.tree) if costly else repr(filter.tree)
    return filter.mask, filter.zone, repr(filter.pairs), tree


def _select(batch: list[StoredEvent], filter: ListenerFilter) -> list[StoredEvent] | None:
    """Return the selected events; None if their types have to be loaded first."""
    hierarchy = filter.hierarchy
    if filter.tree is not None and isinstance(hierarchy, ZoneHierarchy):
        known = hierarchy.knows([stored.event for stored in batch])
        if not known:
            return None
    return [stored for stored in batch if filter.selects(stored)]
