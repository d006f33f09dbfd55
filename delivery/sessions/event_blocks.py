"""Stored events of one stream that many sessions read: after a restart thousands of them pass the
same events, of which each concerns a few. They are kept for a moment in blocks, each with postings
of its events. Plain module.

Concurrency contract: one event loop.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import groupby
from time import monotonic

from eventhub.base import limits
from eventhub.base.event_loop import run_in_slices
from eventhub.eventlog.stored import Cursor, StoredEvent
from registrations.matching.postings import Postings, SpecKeys

_SIZE = limits.SESSION_BLOCK_EVENTS
_Key = tuple[str, int]  # segment, number of the block


class EventBlock:
    """Consecutive events of a segment, from a multiple of the size, which has number 0, to the next
    one, as far as they were read.
    """

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.events = [*events]
        self.bytes = _memory(events)
        self.used_s = monotonic()
        self._postings = Postings()

    @property
    def is_indexed(self) -> bool:
        """Whether all events are in the postings."""
        return self._postings.count == len(self.events)

    def add(self, events: Sequence[StoredEvent]) -> int:
        """Add consecutive events of the block that precede its own, or follow them; return their
        bytes. Others, which would leave a hole, are ignored.
        """
        first, last = self.events[0].sequence, self.events[-1].sequence
        if not events[0].sequence - 1 <= last or events[-1].sequence + 1 < first:
            return 0
        before = [stored for stored in events if stored.sequence < first]
        after = [stored for stored in events if stored.sequence > last]
        if before:
            self._postings = Postings()
        self.events = [*before, *self.events, *after]
        added = _memory(before) + _memory(after)
        self.bytes += added
        return added

    def after(self, sequence: int) -> list[StoredEvent]:
        """Return the events after a sequence; none, if the next one is missing."""
        at = sequence + 1 - self.events[0].sequence
        return self.events[at:] if at >= 0 else []

    def holds(self, events: Sequence[StoredEvent]) -> bool:
        """Return whether it has all of these consecutive events."""
        first, last = self.events[0].sequence, self.events[-1].sequence
        return first <= events[0].sequence and events[-1].sequence <= last

    def index(self) -> Iterator[None]:
        """Put the events into the postings, one per step; others may do so at the same time."""
        while not self.is_indexed:
            self._postings.add(self.events[self._postings.count].read())
            yield

    def select(self, specs: Sequence[SpecKeys]) -> Iterator[int]:
        """Yield the sequences of the events that may match one of the specs; all are indexed."""
        for at in self._postings.candidates(specs):
            yield self.events[at].sequence


class EventBlocks:
    """The blocks of one stream, as long as its history is not in doubt (`clear`)."""

    total_bytes = 0  # of all streams of the process

    def __init__(self) -> None:
        self._blocks: OrderedDict[_Key, EventBlock] = OrderedDict()

    def after(self, cursor: Cursor, count: int) -> list[StoredEvent]:
        """Return the next events after a cursor from consecutive blocks, about so many; empty if
        they are to be read.
        """
        found: list[StoredEvent] = []
        sequence = cursor.sequence
        while len(found) < count and (block := self._get(_key(cursor.segment, sequence + 1))):
            following = block.after(sequence)
            if not following:
                break
            found += following
            sequence = found[-1].sequence
        return found

    def keep(self, page: Sequence[StoredEvent]) -> None:
        """Keep the events of a page for other readers."""
        for key, events in _parts(page):
            self._keep(key, events)

    def _keep(self, key: _Key, events: Sequence[StoredEvent]) -> None:
        block = self._blocks.get(key)
        if block is not None:
            EventBlocks.total_bytes += block.add(events)
        else:
            block = self._blocks[key] = EventBlock(events)
            EventBlocks.total_bytes += block.bytes
        while EventBlocks.total_bytes > limits.SESSION_BLOCKS_BYTES_TOTAL_MAX and self._blocks:
            self._drop()

    async def select(
        self, page: Sequence[StoredEvent], specs: Sequence[SpecKeys]
    ) -> list[StoredEvent]:
        """Return the events of a page that may match one of the specs, the one before each of them
        and the last one: the reader's position passes what it skips. If they are many, the page
        ends there. A page that is not of consecutive events is returned as it is.
        """
        first, last = page[0].sequence, page[-1].sequence
        if last - first != len(page) - 1:
            return list(page)
        found: set[int] = set()
        for key, events in _parts(page):
            if len(found) >= limits.LISTEN_PAGE_EVENTS_MAX:
                last = events[0].sequence - 1
                break
            block = self._get(key)
            if block is None or not block.holds(events):
                self._keep(key, events)
                block = self._get(key)
            if block is None or not block.holds(events):
                found.update(range(events[0].sequence - 1, events[-1].sequence + 1))
                continue
            if not block.is_indexed:
                rounds = limits.SESSION_BLOCK_SLICE_ROUNDS
                await run_in_slices(block.index(), limits.SESSION_BLOCK_SLICE_S, rounds)
            for sequence in block.select(specs):
                found.update((sequence - 1, sequence))
        found.add(last)
        return [page[at - first] for at in sorted(found) if first <= at <= last]

    def drop_idle(self) -> None:
        """Drop the blocks that nobody has used for a while."""
        before_s = monotonic() - limits.SESSION_BLOCKS_IDLE_S
        while self._blocks and next(iter(self._blocks.values())).used_s < before_s:
            self._drop()

    def clear(self) -> None:
        while self._blocks:
            self._drop()

    def _get(self, key: _Key) -> EventBlock | None:
        block = self._blocks.get(key)
        if block is not None:
            block.used_s = monotonic()
            self._blocks.move_to_end(key)
        return block

    def _drop(self) -> None:
        _, block = self._blocks.popitem(last=False)
        EventBlocks.total_bytes -= block.bytes


def block_start(cursor: Cursor) -> Cursor:
    """Return the position before the block of the event after a cursor."""
    return Cursor(cursor.segment, (cursor.sequence + 1) // _SIZE * _SIZE - 1)


def _memory(events: Sequence[StoredEvent]) -> int:
    """Estimate the memory of events in a block: stored bytes, and postings."""
    return sum(len(stored.payload) + 512 for stored in events)


def _parts(page: Sequence[StoredEvent]) -> Iterator[tuple[_Key, Sequence[StoredEvent]]]:
    """Yield the parts of a page by block."""
    at = 0
    while at < len(page):
        first = page[at]
        key = _key_of(first)
        part = page[at : at + _SIZE - first.sequence % _SIZE]
        last = part[-1]
        if last.segment != first.segment or last.sequence - first.sequence != len(part) - 1:
            part = list(next(groupby(part, _key_of))[1])
        yield key, part
        at += len(part)


def _key_of(stored: StoredEvent) -> _Key:
    return _key(stored.segment, stored.sequence)


def _key(segment: str, sequence: int) -> _Key:
    return segment, sequence // _SIZE
