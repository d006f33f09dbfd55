"""The queue of one session between the log and its frames: events that were read and matched wait
here for their place in the session's order, for room in its window, and for their acknowledgement.
Plain module. It has no I/O and no clock.

The caller reads streams and calls `put` or `skip` for what it reads, in order of sequence; `pop`
gives what to send next. Everything that was put and is not settled (acknowledged or expired) comes
again on the next connection, because the cursor stays before it. The events that the cursor has not
passed are bounded, so an event can be overtaken by at most so many.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from delivery.ordering.causal import CausalOrder
from delivery.ordering.held import HeldEvent, Order, Tracked, oldest_first
from delivery.ordering.links import NamedPosition
from delivery.ordering.options import OrderSettings
from delivery.ordering.sorted_orders import (
    ArrivalOrder,
    SortedOrder,
    by_priority,
    by_type,
    by_validity,
)
from delivery.ordering.stream_progress import SavedPosition, StreamProgress
from delivery.ordering.supplier import SupplierOrder
from delivery.ordering.timestamp import TimestampOrder
from eventhub.base import limits, metrics
from eventhub.eventlog.stored import Cursor, StoredEvent

_HELD_BYTES = 1_000  # approximate memory of a held event, without its stored bytes


class QueueLimits(NamedTuple):
    """The bounds of one queue."""

    events: int = limits.SESSION_QUEUE_EVENTS_MAX  # put, and not passed by the cursor
    bytes: int = limits.SESSION_QUEUE_BYTES_MAX  # of stored bytes that wait


QUEUE_LIMITS = QueueLimits()


class QueueMemory:
    """The memory of all events that the process's queues hold for their sessions."""

    bytes = 0


class DeliveryQueue:
    """The queue of one session on one connection. One user at a time. Remove its
    streams at the end: their memory is accounted for.
    """

    def __init__(
        self, settings: OrderSettings, window: int, bounds: QueueLimits = QUEUE_LIMITS
    ) -> None:
        self.window = window  # events that may be delivered and not acknowledged
        self.unacknowledged = 0
        self.held = 0  # events that match and were not delivered yet
        self.held_bytes = 0  # their approximate memory
        self._limits = bounds
        self._streams: dict[str, StreamProgress] = {}
        self._behind: set[str] = set()  # streams of which more is stored than was read
        self._arrivals = 0
        self._tracked = 0
        self._order = self._order_of(settings)

    # --- streams ---

    def add_stream(
        self, stream: str, cursor: Cursor, acknowledged: Iterable[int] = (), *, behind: bool = False
    ) -> None:
        """Add a stream at a saved position. Of the events after the cursor, those in `acknowledged`
        do not come again.
        """
        self._streams[stream] = StreamProgress(cursor, acknowledged)
        self.set_behind(stream, behind)

    def remove_stream(self, stream: str) -> None:
        """Remove a stream; its held events are not delivered."""
        progress = self._streams.pop(stream)
        self._behind.discard(stream)
        self._tracked -= len(progress.tracked)
        for tracked in progress.tracked.values():
            if tracked.delivered and not tracked.settled:
                self.unacknowledged -= 1
            elif tracked.held is not None and tracked.held.matches:
                self._count_held(tracked.held, -1)
            tracked.settled, tracked.held = True, None

    def set_behind(self, stream: str, behind: bool) -> None:
        """State whether more of a stream is stored than was put. Orders that sort give nothing
        meanwhile, unless the queue is full.
        """
        (self._behind.add if behind else self._behind.discard)(stream)

    @property
    def behind(self) -> bool:
        """Whether more of a stream is stored than was put."""
        return bool(self._behind)

    @property
    def needs_all(self) -> bool:
        """Whether the order depends on events that do not match: put them with `matches=False`."""
        return self._order.needs_all

    @property
    def full(self) -> bool:
        """Whether the caller must not put another event."""
        if self._tracked >= self._limits.events:
            return True
        scarce = QueueMemory.bytes >= limits.SESSION_QUEUES_BYTES_TOTAL_MAX
        most = limits.SESSION_QUEUE_SCARCE_BYTES_MAX if scarce else self._limits.bytes
        return self.held_bytes >= most

    @property
    def wants_events(self) -> bool:
        """Whether to put more events: an order that sorts compares all that it may hold, the others
        need only the next ones.
        """
        return not (self.full or (self.held and not self._order.sorts))

    # --- in ---

    def put(
        self,
        stream: str,
        stored: StoredEvent,
        now_us: int,
        item: Any = None,
        *,
        matches: bool = True,
    ) -> None:
        """Add the next event of a stream."""
        progress = self._streams[stream]
        self._arrivals += 1
        tracked = Tracked(stream, stored.sequence, progress.read)
        held = HeldEvent(tracked, stored, item, self._arrivals, matches=matches)
        progress.read = stored.cursor
        progress.changed = True
        if progress.is_known(stored.sequence):
            self._tracked += progress.note_acknowledged(tracked)
            self._order.note_delivered(held)
            return
        tracked.held = held
        progress.track(tracked)
        self._tracked += 1
        if matches:
            self._count_held(held, 1)
        self._order.put(held, now_us)

    def skip(self, stream: str, cursor: Cursor) -> None:
        """Advance in a stream past events that do not match."""
        progress = self._streams[stream]
        progress.read = cursor
        progress.changed = True

    def _count_held(self, held: HeldEvent, sign: int) -> None:
        size = sign * (len(held.stored.payload) + _HELD_BYTES)
        self.held += sign
        self.held_bytes += size
        QueueMemory.bytes += size

    # --- out ---

    def pop(self, now_us: int) -> HeldEvent | None:
        """Return the next event to send; None if the window is full or none is due. Events that
        have expired are counted and not delivered (RDY-50).
        """
        full = self.full
        if self.unacknowledged >= self.window:
            return None
        if self._order.sorts and self._behind and not full:
            return None
        while (held := self._order.take(now_us, full=full)) is not None:
            if self._is_deliverable(held, now_us):
                held.tracked.delivered = True
                self._streams[held.stream].note_delivered(held.tracked)
                self.unacknowledged += 1
                if held.disorder:
                    metrics.OUT_OF_ORDER.labels(reason=held.disorder).inc()
                return held
        return None

    def _is_deliverable(self, held: HeldEvent, now_us: int) -> bool:
        """Settle an event that is not to be sent."""
        if held.tracked.settled:  # acknowledged elsewhere, or its stream was removed
            return False
        held.tracked.held = None
        if held.matches:
            self._count_held(held, -1)
            expires_at_us = held.event.expires_at_us
            if not expires_at_us or expires_at_us > now_us:
                return True
            metrics.EXPIRED.inc()
        self._settle(self._streams[held.stream], held.tracked)
        return False

    def wake_at_us(self) -> int | None:
        """Return the time from which `pop` may return an event, which may be in the past; None if
        that takes a `put`, `set_behind` or an acknowledgement.
        """
        if self.unacknowledged >= self.window:
            return None
        if self._order.sorts and self._behind and not self.full:
            return None
        return self._order.wake_at_us()

    # --- acknowledgements ---

    def acknowledge(self, stream: str, sequence: int) -> None:
        """Acknowledge all events of a stream up to a sequence that were delivered. Those that are
        held still are not acknowledged.
        """
        progress = self._streams[stream]
        for tracked in progress.delivered_up_to(sequence):
            self._acknowledge(progress, tracked)

    def acknowledge_each(self, stream: str, sequences: Iterable[int]) -> None:
        """Acknowledge single events; one that was not delivered, or is acknowledged, does not
        count.
        """
        for tracked in self.unsettled(stream, sequences):
            self.settle(tracked)

    def unsettled(self, stream: str, sequences: Iterable[int]) -> list[Tracked]:
        """Return those events that were delivered and are not acknowledged."""
        tracked = self._streams[stream].tracked
        found = [tracked[each] for each in sequences if each in tracked]
        return [each for each in found if each.delivered and not each.settled]

    def settle(self, tracked: Tracked) -> None:
        """Settle an event that was delivered, and cannot be again."""
        if not tracked.settled:
            self._acknowledge(self._streams[tracked.stream], tracked)

    def acknowledge_elsewhere(self, stream: str, cursor: Cursor, sequences: Iterable[int]) -> None:
        """Settle what others have stored as acknowledged: everything up to a cursor, and single
        events above it, also those that were not delivered or read here.
        """
        progress = self._streams[stream]
        for tracked in progress.acknowledged_elsewhere(cursor, sequences):
            self._acknowledge(progress, tracked)

    def discard(self, held: HeldEvent) -> None:
        """Settle an event that `pop` returned and that is not to be sent after all."""
        self.settle(held.tracked)

    def _acknowledge(self, progress: StreamProgress, tracked: Tracked) -> None:
        tracked.acknowledged = True
        if tracked.delivered:
            self.unacknowledged -= 1
        self._settle(progress, tracked)

    def _settle(self, progress: StreamProgress, tracked: Tracked) -> None:
        held, tracked.held = tracked.held, None
        if held is not None and held.matches:
            self._count_held(held, -1)
        tracked.settled = True
        self._tracked -= progress.settle(tracked)

    # --- positions ---

    def cursor(self, stream: str) -> Cursor:
        """Return the last position of a stream at or before which every event that matches was
        acknowledged or had expired.
        """
        return self._streams[stream].cursor

    def position(self, stream: str) -> SavedPosition:
        """Return the cursor of a stream, and the sequences above it that are acknowledged."""
        return self._streams[stream].position()

    def take_changes(self) -> Mapping[str, SavedPosition]:
        """Return the positions that have changed since the last call."""
        changed = {name: each for name, each in self._streams.items() if each.changed}
        for progress in changed.values():
            progress.changed = False
        return {name: progress.position() for name, progress in changed.items()}

    def set_order(self, settings: OrderSettings, now_us: int) -> None:
        """Continue in another order with what is held."""
        self._order = self._order_of(settings)
        for held in oldest_first(self._waiting()):
            held.waiting = held.extended = False
            held.disorder = ""
            self._order.put(held, now_us)

    def _waiting(self) -> Iterator[HeldEvent]:
        for progress in self._streams.values():
            for tracked in progress.tracked.values():
                if tracked.held is not None:
                    yield tracked.held

    def _order_of(self, settings: OrderSettings) -> Order:
        match settings.name:
            case "priority":
                return SortedOrder(by_priority)
            case "validity":
                return SortedOrder(by_validity)
            case "type":
                return SortedOrder(by_type(settings))
            case "supplier":
                return SupplierOrder(settings)
            case "timestamp":
                return TimestampOrder(settings)
            case "causal":
                return CausalOrder(settings, self._streams, self._is_unread)
            case _:
                return ArrivalOrder()

    def _is_unread(self, position: NamedPosition) -> bool:
        """Return whether the session reads the stream of a position and has not come to it. Without
        a stream only segments that are being read are known.
        """
        if position.stream:
            progress = self._streams.get(position.stream)
            return progress is not None and position.sequence > progress.read.sequence
        return any(
            progress.read.segment == position.segment and position.sequence > progress.read.sequence
            for progress in self._streams.values()
        )
