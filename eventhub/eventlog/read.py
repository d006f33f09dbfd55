"""The only reader of the log's tables: events after a cursor, and what a start means.

Sql module, no Django.

`read` asserts continuity against the segments' rows: an event that is missing is an error, never
"filtered", and a cursor that is not of this log is a `segment_mismatch`, at once.
"""

from typing import Any, Literal, NamedTuple

import psycopg

from eventhub import limits
from eventhub.errors import EventHubError, Gone, LogHole, SegmentMismatch
from eventhub.eventlog import queries
from eventhub.eventlog.stored import ArchivedSegment, Cursor, Stored, StreamInfo

SQL = queries.load("read.sql")


class At(NamedTuple):
    """A time as a start: a hint that resolves to the cursor before the first event appended then
    or later.
    """

    time_us: int


Start = Literal["now", "oldest", "boot"] | Cursor | At
Connection = psycopg.AsyncConnection[Any]


class Position(NamedTuple):
    """Where a reader stands:

    `cursor` is the last event seen, `head` the stream's last sequence at that moment.
    """

    cursor: Cursor
    head: int


class Page(NamedTuple):
    """How much one read may bring; always one event."""

    events_max: int = limits.READ_EVENTS_MAX
    bytes_max: int = limits.READ_BYTES_MAX


_PAGE = Page()
_UNSIGNED = (1 << 64) - 1


async def read(
    connection: Connection, stream_id: int, after: Cursor, page: Page = _PAGE
) -> list[Stored] | ArchivedSegment:
    """The events after a cursor in order; empty when there are none (yet). The archived segment
    that holds the next one, when it has left the database.

    Raises SegmentMismatch for a cursor that is not of this stream or ahead of it, Gone (`gap`) when
    the next event is no longer held, LogHole when it should be there and is not.
    """
    expected = after
    for _ in range(2):  # what was moved or dropped between two statements is looked up again
        found = await _read_once(connection, stream_id, after, page)
        if not isinstance(found, Cursor):
            return found
        expected = found
    raise LogHole(stream_id=stream_id, expected=expected.sequence, segment=expected.segment)


class _Covering(NamedTuple):
    """A segment that holds something of a page. `last`: what must be there now."""

    id: int
    uuid: str
    partition_id: int
    last: int
    tier: str
    first: int
    archive: str
    known: bool | None


async def _read_once(
    connection: Connection, stream_id: int, cursor: Cursor, page: Page
) -> list[Stored] | ArchivedSegment | Cursor:
    """A Cursor: the event that should be there and was not."""
    segments = await _covering(connection, stream_id, cursor, page)
    if not segments or not segments[0].known:
        raise await mismatch(connection, stream_id)
    after = cursor.sequence
    found: list[Stored] = []
    left = page
    while segments:
        segment = segments[0]
        if after < segment.last and segment.tier != "live":
            if found:
                break  # what is before it first
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
            found.append(Stored(segment.uuid, sequence, mask & _UNSIGNED, at_us, payload))
        after = found[-1].sequence if found else after
        left = Page(
            page.events_max - len(found),
            left.bytes_max - sum(len(row[3]) for row in rows),
        )
        if left.events_max <= 0 or left.bytes_max <= 0:
            break
        if after < run[-1].last:
            return found or Cursor(segment.uuid, after + 1)
    return found


async def _covering(
    connection: Connection, stream_id: int, cursor: Cursor, page: Page
) -> list[_Covering]:
    bounds = {
        "stream_id": stream_id,
        "segment": cursor.segment,
        "after": cursor.sequence,
        "segments_max": limits.READ_SEGMENTS_MAX,
        "events_max": page.events_max,
    }
    rows = await connection.execute(SQL["covering_segments"], bounds)
    return [_Covering(*row) for row in await rows.fetchall()]


def _run(segments: list[_Covering], after: int, events_max: int) -> list[_Covering]:
    """The segments that one query reads: the first, and those that follow it in the same group as
    long as all of them are read whole.
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


def _without_hole(rows: list[tuple[Any, ...]], after: int) -> list[tuple[Any, ...]]:
    """The rows that follow a sequence and each other."""
    if not rows or rows[-1][0] == after + len(rows):  # ordered, and no number twice
        return rows
    return [row for at, row in enumerate(rows, after + 1) if row[0] == at]


async def _rows(
    connection: Connection, run: list[_Covering], after: int, page: Page
) -> list[tuple[Any, ...]]:
    """(sequence, mask, microseconds, stored bytes) of the events of a run after a sequence."""
    bounds: dict[str, Any] = {**page._asdict(), "partition_id": run[0].partition_id, "after": after}
    if len(run) == 1:
        bounds["segment_id"], query = run[0].id, SQL["events_after"]
    else:
        bounds["segment_ids"], query = [segment.id for segment in run], SQL["events_of_segments"]
    return await (await connection.execute(query, bounds, binary=True)).fetchall()


async def _gone(connection: Connection, stream_id: int, after: int) -> Gone:
    """Says what is missing, and the cursor from which a reader that accepts it goes on."""
    row = await _one(connection, "available_after", (stream_id, after))
    if row is None:
        return Gone()
    segment, first, _ = row
    return Gone(
        first_available={"segment": segment, "sequence": first},
        missed={"first": after + 1, "last": first - 1},
        resume={"segment": segment, "sequence": first - 1},
    )


async def mismatch(connection: Connection, stream_id: int) -> EventHubError:
    """The refusal of a cursor, with the stream's open segment."""
    row = await _one(connection, "position_now", (stream_id,))
    if row is None:
        return LogHole("The stream has no head.", stream_id=stream_id)
    return SegmentMismatch(current={"segment": row[0], "first": row[1], "last": row[2]})


async def resolve(connection: Connection, stream_id: int, start: Start) -> Position:
    """What a start means now.

    Raises SegmentMismatch for a cursor that is not of this stream or ahead of it, and Gone for one
    whose next event is no longer held.
    """
    row = await _one(connection, "position_now", (stream_id,))
    if row is None:
        raise LogHole("The stream has no head.", stream_id=stream_id)
    segment, first, head = row
    if start == "now":
        return Position(Cursor(segment, head), head)
    if isinstance(start, At):
        return Position(await _at(connection, stream_id, start.time_us), head)
    if start == "boot":
        found = await _one(connection, "position_at_boot", (stream_id,))
        start = Cursor(*found) if found and found[0] is not None else "oldest"
    if start == "oldest":
        return Position(await _oldest(connection, stream_id), head)
    return await _resolve_cursor(connection, stream_id, start, (segment, first, head))


async def _oldest(connection: Connection, stream_id: int) -> Cursor:
    segment, first, _ = await _one(connection, "available_after", (stream_id, 0)) or ("", 1, 0)
    return Cursor(segment, first - 1)


async def _resolve_cursor(
    connection: Connection, stream_id: int, cursor: Cursor, current: tuple[str, int, int]
) -> Position:
    row = await _one(connection, "segment_by_uuid", (stream_id, cursor.segment))
    segment, first, head = current
    if row is None or not row[1] - 1 <= cursor.sequence <= (row[2] if row[2] is not None else head):
        raise SegmentMismatch(current={"segment": segment, "first": first, "last": head})
    if row[3] == "dropped" and cursor.sequence < row[2]:
        raise await _gone(connection, stream_id, cursor.sequence)
    return Position(cursor, head)


async def _at(connection: Connection, stream_id: int, time_us: int) -> Cursor:
    """The cursor before the first event appended at a time or later; times ascend in a stream.

    Of a segment that has left the database, its beginning.
    """
    bounds = {"stream_id": stream_id, "time_us": time_us}
    segment_id, uuid, partition_id, low, last, tier = await _one(
        connection, "segment_at", bounds
    ) or ((0, "", 0, 1, 0, "dropped"))
    high = last + 1 if tier == "live" else low
    while low < high:  # all below `low` are earlier, `high` and above are not
        middle = (low + high) // 2
        row = await _one(connection, "appended_at", (partition_id, segment_id, middle))
        low, high = (middle + 1, high) if row and row[0] < time_us else (low, middle)
    return Cursor(uuid, low - 1)


async def heads(connection: Connection, stream_ids: list[int]) -> dict[int, Cursor]:
    """The last event of each stream."""
    cursor = await connection.execute(SQL["heads"], (stream_ids,))
    return {row[0]: Cursor(row[1], row[2]) for row in await cursor.fetchall()}


async def find_stream(connection: Connection, zone_id: int | None, name: str) -> StreamInfo | None:
    """A zone's stream; None as the zone finds the hub-wide stream `system`."""
    row = await _one(connection, "find_stream", (zone_id, name))
    return None if row is None else StreamInfo(*row)


async def _one(connection: Connection, name: str, values: Any) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = await (await connection.execute(SQL[name], values)).fetchone()
    return row
