"""The only reader of the log's tables: events after a cursor, and the position of a start.
SQL module.

`read` verifies continuity against the rows of the segments: a missing event is an error, never
taken for "filtered". A cursor that is not of this log is a `segment_mismatch` at once.
"""

from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.errors import EventHubError, Gone, LogHole, SegmentMismatch
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.stored import ArchivedSegment, Cursor, StoredEvent, StreamInfo
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars, tuples_of

SQL = queries.load("eventhub/eventlog/sql/read.sql")


class AtTime(NamedTuple):
    """A time as a start. It resolves to the cursor before the first event that was appended then or
    later.
    """

    time_us: int


Start = Literal["now", "oldest", "boot"] | Cursor | AtTime
Connection = psycopg.AsyncConnection[Any]


class Position(NamedTuple):
    """A reader's position. `cursor`: the last event read; `head`: the stream's last sequence at
    that moment.
    """

    cursor: Cursor
    head: int


class ReadLimits(NamedTuple):
    """The most that one read returns; at least one event."""

    events_max: int = limits.READ_EVENTS_MAX
    bytes_max: int = limits.READ_BYTES_MAX


_PAGE = ReadLimits()
_UNSIGNED = (1 << 64) - 1


async def read(
    connection: Connection, stream_id: int, after: Cursor, page: ReadLimits = _PAGE
) -> list[StoredEvent] | ArchivedSegment:
    """Return the events after a cursor in order, empty if there are none yet. If the next event has
    left the database for the archive, return its archived segment.

    Raises SegmentMismatch for a cursor that is not of this stream or ahead of it, Gone (`gap`) if
    the next event was dropped, LogHole if it is missing without reason.
    """
    expected = after
    for _ in range(2):  # a segment may be moved or dropped between two statements
        found = await _read_once(connection, stream_id, after, page)
        if not isinstance(found, Cursor):
            return found
        expected = found
    raise LogHole(stream_id=stream_id, expected=expected.sequence, segment=expected.segment)


class SegmentPlace(NamedTuple):
    """The ids of a segment in the database, and of the partition of its events."""

    uuid: str
    id: int
    partition_id: int


class _CoveringSegment(NamedTuple):
    """A segment with events of a page. `last`: the last sequence that must be there now."""

    id: int
    uuid: str
    partition_id: int
    last: int
    tier: str
    first: int
    archive: str
    known: bool | None


class _EventRow(NamedTuple):
    """An event as stored in a partition."""

    sequence: int
    mask: int  # signed
    at_us: int
    payload: bytes


_Row = tuple[Any, ...]  # with the fields of an _EventRow


class _SegmentRange(NamedTuple):
    """A segment of a stream; `last` None: it is open."""

    segment: str
    first: int
    last: int | None


class _Current(NamedTuple):
    """The open segment of a stream, and the stream's last sequence."""

    segment: str
    first: int
    last: int


class _NamedSegment(NamedTuple):
    """The open segment of a stream, the stream's last sequence, and the segment named by a cursor;
    without a tier, the stream has no such segment.
    """

    segment: str
    first: int
    last: int
    named_first: int | None
    named_last: int | None  # None: it is open
    tier: str | None


class _SegmentAtTime(NamedTuple):
    """A segment that may hold the first event of a time or later."""

    id: int
    uuid: str
    partition_id: int
    first: int
    last: int
    tier: str


class _Head(NamedTuple):
    stream_id: int
    segment: str
    sequence: int


async def _read_once(
    connection: Connection, stream_id: int, cursor: Cursor, page: ReadLimits
) -> list[StoredEvent] | ArchivedSegment | Cursor:
    """Read once, as `read`. A Cursor in the result names an event that is missing."""
    segments = await _covering(connection, stream_id, cursor, page)
    if not segments or not segments[0].known:
        raise await mismatch(connection, stream_id)
    after = cursor.sequence
    found: list[StoredEvent] = []
    left = page
    while segments:
        segment = segments[0]
        if after < segment.last and segment.tier != "live":
            if found:
                break  # return the events before it first
            if segment.tier == "dropped":
                raise await _gone(connection, stream_id, after)
            return ArchivedSegment(segment.uuid, segment.archive, segment.first, segment.last)
        run = _run(segments, after, left.events_max)
        segments = segments[len(run) :]
        rows = _without_hole(await _rows(connection, run, after, left), after)
        following = iter(run[1:])
        for sequence, mask, at_us, payload in rows:
            while sequence > segment.last and segment is not run[-1]:  # the open one goes on
                segment = next(following)
            found.append(StoredEvent(segment.uuid, sequence, mask & _UNSIGNED, at_us, payload))
        after = found[-1].sequence if found else after
        left = ReadLimits(
            page.events_max - len(found),
            left.bytes_max - sum(len(payload) for _, _, _, payload in rows),
        )
        if left.events_max <= 0 or left.bytes_max <= 0:
            break
        if after < run[-1].last:
            return found or Cursor(segment.uuid, after + 1)
    return found


async def _covering(
    connection: Connection, stream_id: int, cursor: Cursor, page: ReadLimits
) -> list[_CoveringSegment]:
    bounds = {
        "stream_id": stream_id,
        "segment": cursor.segment,
        "after": cursor.sequence,
        "segments_max": limits.READ_SEGMENTS_MAX,
        "events_max": page.events_max,
    }
    rows = await cursor_of(connection, _CoveringSegment).execute(SQL["covering_segments"], bounds)
    return await rows.fetchall()


def _run(segments: list[_CoveringSegment], after: int, events_max: int) -> list[_CoveringSegment]:
    """Return the segments that one query reads: the first, and those after it in the same partition
    as long as all of them are read completely.
    """
    run = segments[:1]
    count = run[0].last - after
    for segment in segments[1:]:
        count += segment.last - segment.first + 1
        if (
            segment.tier != "live"
            or segment.partition_id != run[0].partition_id
            or count > events_max
        ):
            break
        run.append(segment)
    return run


def _without_hole(rows: list[_Row], after: int) -> list[_Row]:
    """Return the rows before the first hole after a sequence."""
    if not rows or rows[-1][0] == after + len(rows):  # ordered, and no number twice
        return rows
    return [row for at, row in enumerate(rows, after + 1) if row[0] == at]


async def _rows(
    connection: Connection, run: list[_CoveringSegment], after: int, page: ReadLimits
) -> list[_Row]:
    """Read the events of consecutive segments after a sequence."""
    bounds: dict[str, Any] = {**page._asdict(), "partition_id": run[0].partition_id, "after": after}
    events = tuples_of(connection, _EventRow)
    if len(run) == 1:
        bounds["segment_id"] = run[0].id
        await events.execute(SQL["events_after"], bounds, binary=True)
    else:
        bounds["segment_ids"] = [segment.id for segment in run]
        await events.execute(SQL["events_of_segments"], bounds, binary=True)
    return await events.fetchall()


async def _gone(connection: Connection, stream_id: int, after: int) -> Gone:
    """Return the error with the missing range and the cursor from which a reader can resume."""
    row = await _available(connection, stream_id, after)
    if row is None:
        return Gone()
    return Gone(
        first_available={"segment": row.segment, "sequence": row.first},
        missed={"first": after + 1, "last": row.first - 1},
        resume={"segment": row.segment, "sequence": row.first - 1},
    )


async def mismatch(connection: Connection, stream_id: int) -> EventHubError:
    """Return the error for a refused cursor, with the stream's open segment."""
    current = await _current(connection, stream_id)
    if current is None:
        return StreamDeleted()
    return SegmentMismatch(current=current._asdict())


async def resolve(connection: Connection, stream_id: int, start: Start) -> Position:
    """Return the present position of a start.

    Raises SegmentMismatch for a cursor that is not of this stream or ahead of it, and Gone if the
    next event was dropped.
    """
    if isinstance(start, Cursor):
        return await _resolve_cursor(connection, stream_id, start)
    current = await _current(connection, stream_id)
    if current is None:
        raise StreamDeleted
    head = current.last
    if start == "now":
        return Position(Cursor(current.segment, head), head)
    if isinstance(start, AtTime):
        return Position(await _at(connection, stream_id, start.time_us), head)
    if start == "boot":
        query = cursor_of(connection, Cursor)
        found = await (await query.execute(SQL["position_at_boot"], (stream_id,))).fetchone()
        start = found or "oldest"
    if start == "oldest":
        return Position(await _oldest(connection, stream_id), head)
    return await _resolve_cursor(connection, stream_id, start)


async def cursor_before(connection: Connection, stream_id: int, sequence: int) -> Cursor:
    """Return the cursor before an event. Raises Gone if it was dropped."""
    row = await _available(connection, stream_id, sequence - 1)
    if row is None or row.first > sequence:
        raise await _gone(connection, stream_id, sequence - 1)
    return Cursor(row.segment, sequence - 1)


async def _oldest(connection: Connection, stream_id: int) -> Cursor:
    row = await _available(connection, stream_id, 0) or _SegmentRange("", 1, 0)
    return Cursor(row.segment, row.first - 1)


async def _available(connection: Connection, stream_id: int, after: int) -> _SegmentRange | None:
    query = cursor_of(connection, _SegmentRange)
    return await (await query.execute(SQL["available_after"], (stream_id, after))).fetchone()


async def _current(connection: Connection, stream_id: int) -> _Current | None:
    query = cursor_of(connection, _Current)
    return await (await query.execute(SQL["position_now"], (stream_id,))).fetchone()


async def _resolve_cursor(connection: Connection, stream_id: int, cursor: Cursor) -> Position:
    query = cursor_of(connection, _NamedSegment)
    values = (cursor.segment, stream_id)
    found = await (await query.execute(SQL["segment_by_uuid"], values)).fetchone()
    if found is None:
        raise StreamDeleted
    last = found.last if found.named_last is None else found.named_last
    if found.named_first is None or not found.named_first - 1 <= cursor.sequence <= last:
        current = _Current(found.segment, found.first, found.last)
        raise SegmentMismatch(current=current._asdict())
    if found.tier == "dropped" and cursor.sequence < last:
        raise await _gone(connection, stream_id, cursor.sequence)
    return Position(cursor, found.last)


async def _at(connection: Connection, stream_id: int, time_us: int) -> Cursor:
    """Return the cursor before the first event appended at a time or later; times ascend in a
    stream. In a segment that has left the database, it is the segment's beginning.
    """
    bounds = {"stream_id": stream_id, "time_us": time_us}
    query = cursor_of(connection, _SegmentAtTime)
    found = await (await query.execute(SQL["segment_at"], bounds)).fetchone()
    segment = found or _SegmentAtTime(0, "", 0, 1, 0, "dropped")
    low = segment.first
    high = segment.last + 1 if segment.tier == "live" else low
    while low < high:  # all below `low` are earlier, `high` and above are not
        middle = (low + high) // 2
        key = (segment.partition_id, segment.id, middle)
        times = await scalars(connection).execute(SQL["appended_at"], key)
        at_us = await times.fetchone()
        low, high = (middle + 1, high) if at_us and at_us < time_us else (low, middle)
    return Cursor(segment.uuid, low - 1)


async def heads(connection: Connection, stream_ids: list[int]) -> dict[int, Cursor]:
    """Return the last event of each stream."""
    found = await tuples_of(connection, _Head).execute(SQL["heads"], (stream_ids,))
    return {
        stream_id: Cursor(segment, sequence)
        for stream_id, segment, sequence in await found.fetchall()
    }


async def find_stream(connection: Connection, zone_id: int | None, name: str) -> StreamInfo | None:
    """Return a zone's stream, or None. Zone None has the hub-wide stream `system`."""
    query = cursor_of(connection, StreamInfo)
    return await (await query.execute(SQL["find_stream"], (zone_id, name))).fetchone()
