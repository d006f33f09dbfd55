"""Reads the streams of a group in one order: by the time of append, as far as all streams are read.
SQL module.

Which events come next depends on what has been read, so another reader may return another order;
the journal of the group records this one. Concurrency contract: one task.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.errors import Gone, UnknownStream
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor, StoredEvent

_PAGE = ReadLimits(limits.PATTERN_READ_EVENTS_MAX)
_NO_BOUND = limits.INTEGER_MAX
_ENDED = (UnknownStream, StreamDeleted)


class StreamGap(NamedTuple):
    """Events that were removed from the log before the group consumed them."""

    stream: int
    first: int
    last: int


class _StreamBuffer:
    """A stream of the group. `read`: events that are read and not consumed, each with the latest
    time of append up to it, because a clock may be set back; `cursor`: the last consumed event;
    `is_behind`: there may be more events to read at once.
    """

    def __init__(self, id: int, follower: Follower) -> None:
        self.id = id
        self.follower = follower
        self.read: deque[tuple[int, StoredEvent]] = deque()
        self.cursor = follower.cursor
        self.is_behind = True
        self._latest_us = 0

    def take(self, batch: Sequence[StoredEvent]) -> None:
        """Add the next events."""
        for stored in batch:
            self._latest_us = max(self._latest_us, stored.appended_at_us)
            self.read.append((self._latest_us, stored))
        if batch:
            self.follower.advance_to(batch[-1])
        self.is_behind = self.follower.ring.next - 1 > self.follower.cursor.sequence


class GroupReader:
    """The streams of a group. `gaps`: what could not be read since they were taken."""

    def __init__(self) -> None:
        self.gaps: list[StreamGap] = []
        self._streams: dict[int, _StreamBuffer] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, log: Log, cursors: Mapping[int, Cursor], wake_up: asyncio.Event
    ) -> AsyncIterator["GroupReader"]:
        """Read from the cursors on, and set `wake_up` for new events. A deleted stream has no
        events. Raises what `follow` raises.
        """
        reader = cls()
        async with AsyncExitStack() as stack:
            for id, cursor in cursors.items():
                try:
                    follower = await reader._follow(log, stack, id, cursor)
                except _ENDED:
                    continue
                follower.ring.wakers.add(wake_up)
                stack.callback(follower.ring.wakers.discard, wake_up)
                reader._streams[id] = _StreamBuffer(id, follower)
            yield reader

    @property
    def cursors(self) -> dict[int, Cursor]:
        """The last consumed event of each stream that exists."""
        return {stream.id: stream.cursor for stream in self._streams.values()}

    @property
    def lag_events(self) -> int:
        """The number of events that are known and not consumed."""
        return sum(
            max(one.follower.ring.next - 1 - one.cursor.sequence, 0)
            for one in self._streams.values()
        )

    @property
    def oldest_us(self) -> int:
        """When the oldest event was appended that is read and not consumed; 0: there is none."""
        oldest = [one.read[0][1] for one in self._streams.values() if one.read]
        return min((stored.appended_at_us for stored in oldest), default=0)

    async def read(self, upto: Mapping[int, int]) -> bool:
        """Read what follows; return whether there is something to consume. `upto`: sequences that
        are known to exist, so they are read even if no process announced them. Raises what
        `catch_up` raises, but for removed events.
        """
        for stream in list(self._streams.values()):
            if stream.read:
                continue
            try:
                await self._read(stream, upto.get(stream.id, 0))
            except _ENDED:
                del self._streams[stream.id]
            except Gone as gone:
                if "missed" not in gone.details:
                    raise
                self._skip(stream, gone)
        return any(stream.read for stream in self._streams.values())

    def next(self, upto: Mapping[int, int], count: int) -> list[tuple[int, StoredEvent]]:
        """Return the next events, `count` at most, each with its stream; none above a sequence of
        `upto`. `consume` takes them, in this order.
        """
        behind = [
            one
            for one in self._streams.values()
            if one.is_behind
            and one.read
            and one.read[-1][1].sequence <= upto.get(one.id, _NO_BOUND)
        ]
        horizon_us = min((one.read[-1][0] for one in behind), default=None)
        found: list[tuple[int, int, StoredEvent]] = []
        for stream in self._streams.values():
            bound = upto.get(stream.id, _NO_BOUND)
            for at_us, stored in stream.read:
                if stored.sequence > bound:
                    break
                if horizon_us is not None and at_us > horizon_us:
                    break
                found.append((at_us, stream.id, stored))
        if len(self._streams) > 1:
            found.sort(key=lambda one: (one[0], one[1], one[2].sequence))
        return [(id, stored) for _, id, stored in found[:count]]

    def consume(self, id: int) -> None:
        """Take the next event of a stream."""
        stream = self._streams[id]
        stream.cursor = stream.read.popleft()[1].cursor

    async def _read(self, stream: _StreamBuffer, upto: int) -> None:
        follower = stream.follower
        batch = follower.next_in_ring(limits.PATTERN_READ_EVENTS_MAX)
        if batch is None or (not batch and follower.cursor.sequence < upto):
            batch = await follower.catch_up(_PAGE)
        stream.take(batch)

    async def _follow(self, log: Log, stack: AsyncExitStack, id: int, cursor: Cursor) -> Follower:
        try:
            return await stack.enter_async_context(log.follow(id, cursor))
        except Gone as gone:
            if "missed" not in gone.details:
                raise
            resume = self._note(id, gone)
            return await stack.enter_async_context(log.follow(id, resume))

    def _skip(self, stream: _StreamBuffer, gone: Gone) -> None:
        stream.cursor = stream.follower.cursor = self._note(stream.id, gone)
        stream.is_behind = True

    def _note(self, id: int, gone: Gone) -> Cursor:
        missed = gone.details["missed"]
        self.gaps.append(StreamGap(id, missed["first"], missed["last"]))
        return Cursor(**gone.details["resume"])
