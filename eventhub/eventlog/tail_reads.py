"""The reads with which a process keeps its rings full, on one connection. SQL module.

What other processes have just appended is mostly in the segment of the ring's last event. One
statement, prepared once, reads it, because its time is part of every delivery's; it also reads the
head of `system`. What it does not find is left to `read`, which verifies continuity and knows all
segments.

Concurrency contract: one event loop; one call at a time.
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

from eventhub.base import limits
from eventhub.eventlog.read import SQL, SegmentPlace, read
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import ArchivedSegment, StoredEvent
from eventhub.postgresql.connections import Connection, answered_within
from eventhub.postgresql.prepared import fetch_prepared
from eventhub.postgresql.rows import fetch_one

_UNSIGNED = (1 << 64) - 1
_PAGE = {"events_max": limits.READ_EVENTS_MAX, "bytes_max": limits.READ_BYTES_MAX}


class ReadEvents(NamedTuple):
    """Events in order. `system`: the head of `system` at the moment of their read, if known."""

    events: list[StoredEvent]
    system: int | None = None


class _FollowingRow(NamedTuple):
    """An event as stored, and the head of `system`."""

    sequence: int
    mask: int  # signed
    at_us: int
    payload: bytes
    system: int | None


class TailReads:
    """The reads of one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._places: WeakKeyDictionary[Ring, SegmentPlace] = WeakKeyDictionary()

    async def after(self, stream_id: int, ring: Ring) -> ReadEvents | None:
        """Return the events after the last one of a stream's ring; None if the next one is in the
        archive. Raises psycopg.Error and the errors of `read`.
        """
        with answered_within(self.connection, limits.READ_TIMEOUT_S_MAX):
            found = await self._in_segment(ring)
            if found is not None:
                return found
            events = await read(self.connection, stream_id, ring.head)
        return None if isinstance(events, ArchivedSegment) else ReadEvents(events)

    async def _in_segment(self, ring: Ring) -> ReadEvents | None:
        """Return the events after the last one that are in its segment, without a hole; None if
        there are none.
        """
        segment, after = ring.head
        place = await self._place(ring, segment)
        if place is None:
            return None
        bounds = {**_PAGE, "partition_id": place.partition_id, "segment_id": place.id}
        values = {**bounds, "after": after}
        rows = await fetch_prepared(self.connection, _FollowingRow, SQL["next_events"], values)
        if not rows or rows[-1].sequence != after + len(rows):
            self._places.pop(ring, None)  # its events may have been moved
            return None
        events = [
            StoredEvent(segment, sequence, mask & _UNSIGNED, at_us, payload)
            for sequence, mask, at_us, payload, _ in rows
        ]
        return ReadEvents(events, rows[0].system)

    async def _place(self, ring: Ring, segment: str) -> SegmentPlace | None:
        known = self._places.get(ring)
        if known is not None and known.uuid == segment:
            return known
        found = await fetch_one(self.connection, SegmentPlace, SQL["place"], (segment or None,))
        if found is not None:
            self._places[ring] = found
        return found
