"""Pages of the log as one value of the database: a reader that sends stored bytes as they are needs
no object an event. SQL module.

The statement has neither a sum that bounds the page's bytes nor a row an event, which take half of
the time of a page. So it is used where events are of about one size, as the page before has shown:
it leaves out events that exceed their share of the page. The page ends before one of these, or
before a hole; `read` knows what follows.
"""

import struct
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from psycopg_pool import AsyncConnectionPool

from eventhub.base import metrics
from eventhub.event.compiled import transcoder
from eventhub.eventlog.read import SQL, ReadLimits, SegmentPlace
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import Connection, reading
from eventhub.postgresql.prepared import fetch_prepared
from eventhub.postgresql.rows import fetch_one

PackedRun = Callable[[bytes, int], tuple[int, int, int]]
_packed_run: PackedRun | None = getattr(transcoder, "packed_run", None)  # None: not built
_EVENTS_MIN = 256  # of a page: they are of about one size, and small
_HEAD = struct.Struct(">qQqi")  # sequence, mask, time, size of the stored bytes
_FROM_1970_US = 946_684_800_000_000  # to 2000, where PostgreSQL's times begin


class PackedPage:
    """Consecutive events of a segment. The position in the page to which its user has come is kept
    with its place in the bytes.
    """

    __slots__ = ("_at", "_offset", "after", "count", "packed", "segment")

    def __init__(self, after: Cursor, count: int, packed: bytes) -> None:
        self.segment = after.segment
        self.after = after.sequence  # that before the first event
        self.count = count
        self.packed = packed
        self._at = self._offset = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> StoredEvent:
        offset = self.offset(at)
        sequence, mask, at_us, size = _HEAD.unpack_from(self.packed, offset)
        begin = offset + _HEAD.size
        payload = self.packed[begin : begin + size]
        return StoredEvent(self.segment, sequence, mask, at_us + _FROM_1970_US, payload)

    def cursor(self, at: int) -> Cursor:
        """Return the cursor of the event at a position."""
        return Cursor(self.segment, self.after + 1 + at)

    def offset(self, at: int) -> int:
        """Return where an event begins in the bytes."""
        if at < self._at:
            self._at = self._offset = 0
        while self._at < at:
            size: int = _HEAD.unpack_from(self.packed, self._offset)[3]
            self.keep(self._at + 1, self._offset + _HEAD.size + size)
        return self._offset

    def keep(self, at: int, offset: int) -> None:
        """Note where the event at a position begins."""
        self._at, self._offset = at, offset

    def events(self, at: int, end: int) -> list[StoredEvent]:
        """Return the events from a position to another one."""
        return [self[each] for each in range(at, end)]


class _PackedRow(NamedTuple):
    """Events after one another; None if there are none."""

    packed: bytes | None


class PackedReads:
    """The packed pages of one reader of a stream. The page before shows where the next begins, and
    how large events are.
    """

    def __init__(self) -> None:
        self._after: Cursor | None = None  # the end of the last page, if the next may be packed
        self._largest = 0  # event of the last page
        self._place: SegmentPlace | None = None

    def note_rows(self, events: list[StoredEvent], page: ReadLimits) -> None:
        """Note where a page that was read in rows ends, and how large its events are."""
        self._after = None
        if not events or events[0].segment != events[-1].segment or _packed_run is None:
            return
        sizes = [len(stored.payload) for stored in events]
        self._largest = max(sizes)
        if len(events) == page.events_max or sum(sizes) >= page.bytes_max:  # there may be more
            self._after = events[-1].cursor

    def may_follow(self, cursor: Cursor, page: ReadLimits) -> bool:
        """Return whether the page after a cursor may be packed."""
        return cursor == self._after and self._events_max(page) >= _EVENTS_MIN

    def _events_max(self, page: ReadLimits) -> int:
        """Return how many events a page holds that are a quarter larger than those before."""
        return min(page.events_max, page.bytes_max * 4 // (self._largest * 5 + 1))

    async def next(
        self, connection: Connection, cursor: Cursor, page: ReadLimits
    ) -> PackedPage | None:
        """Return the page after a cursor that it may follow, which may be shorter than there are
        events; None if it is to be read in rows. Raises psycopg.Error.
        """
        self._after = None
        place = await self._placed(connection, cursor.segment)
        if place is None or _packed_run is None:
            return None
        events_max = self._events_max(page)
        bounds = {"events_max": events_max, "payload_max": page.bytes_max // events_max}
        ids = {"segment_id": place.id, "partition_id": place.partition_id, "segment": place.uuid}
        values = {**bounds, **ids, "after": cursor.sequence}
        [row] = await fetch_prepared(connection, _PackedRow, SQL["packed_events"], values)
        packed = row.packed or b""
        count, size, self._largest = _packed_run(packed, cursor.sequence)
        if not count:
            self._place = None  # its events may have been moved
            return None
        found = PackedPage(cursor, count, packed if size == len(packed) else packed[:size])
        if count == events_max:
            self._after = found.cursor(count - 1)
        return found

    async def _placed(self, connection: Connection, segment: str) -> SegmentPlace | None:
        if self._place is None or self._place.uuid != segment:
            self._place = await fetch_one(connection, SegmentPlace, SQL["place"], (segment,))
        return self._place


Page = list[StoredEvent] | PackedPage
Read = Callable[[Cursor, ReadLimits], Awaitable[list[StoredEvent]]]
ReadPage = Callable[[Cursor, ReadLimits], Awaitable[Page]]


def reader_of_pages(pool: AsyncConnectionPool[Connection], read_rows: Read) -> ReadPage:
    """Return a function that reads the pages of one reader of a stream, packed where they can be,
    else in rows.
    """
    packed = PackedReads()

    async def read_page(cursor: Cursor, page: ReadLimits) -> Page:
        if packed.may_follow(cursor, page):
            metrics.RING_READS.labels(tier="database").inc()
            async with reading(pool) as connection:
                found = await packed.next(connection, cursor, page)
            if found is not None:
                return found
        events = await read_rows(cursor, page)
        packed.note_rows(events, page)
        return events

    return read_page


def cursor_at(page: Page, at: int) -> Cursor:
    """Return the cursor of the event at a position in a page."""
    return page.cursor(at) if isinstance(page, PackedPage) else page[at].cursor
