"""Ring buffers with the newest events of streams in one process, indexed by sequence. Plain module.

Concurrency contract: one event loop. Only the tail calls `push`; readers call `after` and never
wait for each other. A ring accepts only the next sequence: older rows are known already, and a
higher one means a hole that must be read from the log.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, KeysView, Sequence
from contextlib import asynccontextmanager

from eventhub.base import limits
from eventhub.base.event_loop import Waker
from eventhub.eventlog.stored import Cursor, StoredEvent

_SIZE = limits.RING_EVENTS_MAX
_SLOT = _SIZE - 1  # _SIZE is a power of two


class Ring:
    """The sequences [first, next). `wakers` are set after every push.

    `life` rises when the ring's content may be wrong: readers then read the log again with their
    whole cursor. Between `distrust` and `skip_to` no rows are accepted.
    """

    def __init__(self, head: Cursor, *, bytes_max: int) -> None:
        self._before = head  # the last event before the ring's first
        self.first = self.next = head.sequence + 1
        self.life = 0
        self.trusted = True
        self.bytes_max = bytes_max
        self.confirmed_s = float("-inf")  # loop time when the ring was last known to be at the head
        self.wakers: set[Waker] = set()
        self._system = (0, 0)  # the head of `system` when the events up to a sequence were read
        self._bytes = 0
        self._slots: list[StoredEvent | None] = [None] * _SIZE

    @property
    def head(self) -> Cursor:
        """The last event in the ring, or before it if it is empty."""
        newest = self._slots[(self.next - 1) & _SLOT] if self.next > self.first else None
        return self._before if newest is None else newest.cursor

    def push(self, rows: Sequence[StoredEvent], *, system: int | None = None) -> bool:
        """Add the rows that come next and ignore known ones. Return False if there is a hole before
        a row. `system`: the head of `system` at the moment of their read, if it is known.
        """
        if system is not None and self.trusted:
            self._system = (rows[-1].sequence, system)
        pushed = False
        complete = True
        for stored in rows if self.trusted else ():
            if stored.sequence < self.next:
                continue
            if stored.sequence > self.next:
                complete = False
                break
            self._put(stored)
            pushed = True
        if pushed:
            self._wake()
        return complete

    def after(self, sequence: int, count: int) -> list[StoredEvent] | None:
        """Return up to `count` events after a sequence; None if they have left the ring and must be
        read from the log.
        """
        if not self.holds(sequence):
            return None
        start = sequence + 1
        stop = min(self.next, start + count)
        slots = self._slots
        return [stored for at in range(start, stop) if (stored := slots[at & _SLOT]) is not None]

    def system_at(self, sequence: int) -> int | None:
        """Return a head of `system` that has every change made before an event in the ring was
        appended; None if it is not known.
        """
        through, head = self._system
        return head if sequence <= through else None

    def holds(self, sequence: int) -> bool:
        """Return whether no event after a sequence has left the ring."""
        return self.trusted and sequence + 1 >= self.first

    def skip_to(self, head: Cursor) -> None:
        """Empty the ring and continue after a head: readers behind it must read from the log."""
        self._slots = [None] * _SIZE
        self._bytes = 0
        self._before = head
        self.first = self.next = head.sequence + 1
        self.trusted = True
        self._system = (0, 0)
        self._wake()

    def distrust(self) -> None:
        """Invalidate the ring until `skip_to`: the store was unreachable, and may have been
        replaced.
        """
        self.life += 1
        self.trusted = False
        self._system = (0, 0)
        self._wake()

    def _wake(self) -> None:
        for waker in self.wakers:
            waker.set()

    def _put(self, stored: StoredEvent) -> None:
        if self.next - self.first == _SIZE:
            self._evict()
        self._slots[stored.sequence & _SLOT] = stored
        self.next = stored.sequence + 1
        self._bytes += memory_bytes(stored)
        while self._bytes > self.bytes_max and self.next - self.first > 1:
            self._evict()

    def _evict(self) -> None:
        slot = self.first & _SLOT
        oldest = self._slots[slot]
        if oldest is not None:
            self._bytes -= memory_bytes(oldest)
        self._slots[slot] = None
        self.first += 1


def memory_bytes(stored: StoredEvent) -> int:
    """Estimate the memory of an event that was read: stored bytes, decoded, and as JSON."""
    return 4 * len(stored.payload) + 1024


class Rings:
    """Rings by stream. All rings in `shares`, transient ones too, share the memory equally."""

    def __init__(
        self,
        shares: set[Ring],
        head_of: Callable[[int], Awaitable[Cursor]],
        created: Callable[[], None],
    ) -> None:
        self._created = created  # called when there is a new one
        self._rings: dict[int, Ring] = {}
        self._watchers: dict[int, int] = {}
        self._unwatched_at_s: dict[int, float] = {}  # of streams without watchers
        self._shares = shares
        self._head_of = head_of

    @asynccontextmanager
    async def watch(self, stream_id: int) -> AsyncIterator[Ring]:
        """Keep the stream's ring while the block runs and a little longer, for readers that poll.
        Raises the errors of `head_of`.
        """
        if stream_id not in self._rings:
            head = await self._head_of(stream_id)
            if stream_id not in self._rings:  # no other task was quicker
                self._rings[stream_id] = Ring(head, bytes_max=limits.RING_BYTES_TOTAL_MAX)
                self._shares.add(self._rings[stream_id])
                self._share()
                self._created()
        self._watchers[stream_id] = self._watchers.get(stream_id, 0) + 1
        self._unwatched_at_s.pop(stream_id, None)
        try:
            yield self._rings[stream_id]
        finally:
            self._watchers[stream_id] -= 1
            if not self._watchers[stream_id]:
                self._unwatched_at_s[stream_id] = asyncio.get_running_loop().time()

    def get(self, stream_id: int) -> Ring | None:
        return self._rings.get(stream_id)

    def ids(self) -> KeysView[int]:
        """Return the streams that have a ring."""
        return self._rings.keys()

    def all(self) -> list[tuple[int, Ring]]:
        """Return the present rings, after removing those that were unwatched for long."""
        before_s = asyncio.get_running_loop().time() - limits.RING_IDLE_S
        for stream_id, unwatched_at_s in list(self._unwatched_at_s.items()):
            if unwatched_at_s < before_s:
                del self._unwatched_at_s[stream_id], self._watchers[stream_id]
                self._shares.discard(self._rings.pop(stream_id))
                self._share()
        return list(self._rings.items())

    def distrust(self) -> None:
        """Invalidate all rings until each is checked against its head."""
        for ring in self._rings.values():
            ring.distrust()

    def _share(self) -> None:
        for ring in self._shares:
            ring.bytes_max = limits.RING_BYTES_TOTAL_MAX // len(self._shares)
