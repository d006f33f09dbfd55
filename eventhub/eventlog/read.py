"""The only reader of the log's tables: events after a sequence, and what a start means.

Sql module, no Django.

`read` asserts continuity against the segments' rows: an event that is missing is an error, never
"filtered".
"""

from typing import Any, Literal, NamedTuple

import psycopg

from eventhub import limits
from eventhub.errors import EventHubError, Gone, LogHole, SegmentMismatch
from eventhub.eventlog import queries
from eventhub.eventlog.stored import Cursor, Stored

SQL = queries.load("read.sql")
Start = Literal["now", "oldest"] | Cursor
Connection = psycopg.AsyncConnection[Any]


class Position(NamedTuple):
    """Where a reader stands:

    `cursor` is the last event seen, `head` the stream's last sequence at that moment.
    """

    cursor: Cursor
    head: int


async def read(connection: Connection, stream_id: int, after: int) -> list[Stored]:
    """The events after a sequence in order, bounded by count and bytes; empty when there are none
    (yet).

    Raises Gone (`gap`) when the next event is no longer held, LogHole when it should be there and
    is not.
    """
    cursor = await connection.execute(
        SQL["covering_segments"], {"stream_id": stream_id, "after": after, "segments_max": 8}
    )
    found: list[Stored] = []
    bytes_left = limits.READ_BYTES_MAX
    for segment_id, uuid, group_id, last, tier in await cursor.fetchall():
        rows: list[tuple[Any, ...]] = []
        if tier != "dropped":
            events_left = limits.READ_EVENTS_MAX - len(found)
            where = (segment_id, group_id)
            rows = await _segment_rows(connection, where, after, events_left, bytes_left)
        for sequence, mask, appended_at_us, payload in _without_hole(rows, after):
            found.append(Stored(uuid, sequence, mask & _UNSIGNED, appended_at_us, payload))
            bytes_left -= len(payload)
            after = sequence
        if len(found) >= limits.READ_EVENTS_MAX or bytes_left <= 0:
            break
        if after < last:
            if not found:
                raise await _missing(connection, Cursor(uuid, after + 1), stream_id)
            break  # what is before the hole first
    return found


def _without_hole(rows: list[tuple[Any, ...]], after: int) -> list[tuple[Any, ...]]:
    """The rows that follow a sequence and each other."""
    if not rows or rows[-1][0] == after + len(rows):  # ordered, and no number twice
        return rows
    return [row for at, row in enumerate(rows, after + 1) if row[0] == at]


async def _missing(connection: Connection, wanted: Cursor, stream_id: int) -> EventHubError:
    """Why an event is not there: its segment is dropped, perhaps since a moment, or it is lost."""
    query = await connection.execute(SQL["segment_by_uuid"], (stream_id, wanted.segment))
    row = await query.fetchone()
    if row is not None and row[3] == "dropped":
        return await _gone(connection, stream_id)
    return LogHole(stream_id=stream_id, expected=wanted.sequence, segment=wanted.segment)


async def _gone(connection: Connection, stream_id: int) -> Gone:
    oldest = (await resolve(connection, stream_id, "oldest")).cursor
    return Gone(first_available={"segment": oldest.segment, "sequence": oldest.sequence + 1})


_UNSIGNED = (1 << 64) - 1


async def _segment_rows(
    connection: Connection, where: tuple[int, int], after: int, events_max: int, bytes_max: int
) -> list[tuple[Any, ...]]:
    segment_id, group_id = where
    cursor = await connection.execute(
        SQL["events_after"],
        {
            "group_id": group_id,
            "segment_id": segment_id,
            "after": after,
            "events_max": events_max,
            "bytes_max": bytes_max,
        },
        binary=True,
    )
    return await cursor.fetchall()


async def resolve(connection: Connection, stream_id: int, start: Start) -> Position:
    """What a start means now.

    Raises SegmentMismatch for a cursor that is not of this stream or ahead of it, and Gone for one
    whose next event is no longer held.
    """
    row = await (await connection.execute(SQL["position_now"], (stream_id,))).fetchone()
    if row is None:
        raise LogHole("The stream has no head.", stream_id=stream_id)
    segment, first, head = row
    if start == "now":
        return Position(Cursor(segment, head), head)
    if start == "oldest":
        oldest = await (await connection.execute(SQL["oldest_segment"], (stream_id,))).fetchone()
        return Position(Cursor(oldest[0], oldest[1] - 1) if oldest else Cursor(segment, head), head)
    return await _resolve_cursor(connection, stream_id, start, (segment, first, head))


async def _resolve_cursor(
    connection: Connection, stream_id: int, cursor: Cursor, current: tuple[str, int, int]
) -> Position:
    found = await connection.execute(SQL["segment_by_uuid"], (stream_id, cursor.segment))
    row = await found.fetchone()
    segment, first, head = current
    if row is None or not row[1] - 1 <= cursor.sequence <= (row[2] if row[2] is not None else head):
        raise SegmentMismatch(current={"segment": segment, "first": first, "last": head})
    if row[3] == "dropped" and cursor.sequence < row[2]:
        raise await _gone(connection, stream_id)
    return Position(cursor, head)


async def heads(connection: Connection, stream_ids: list[int]) -> dict[int, int]:
    """The last sequence of each stream."""
    cursor = await connection.execute(SQL["heads"], (stream_ids,))
    return {row[0]: row[1] for row in await cursor.fetchall()}


async def find_stream(connection: Connection, zone_id: int | None, name: str) -> int | None:
    """The id of a zone's stream; None as the zone finds the hub-wide stream `system`."""
    row = await (await connection.execute(SQL["find_stream"], (zone_id, name))).fetchone()
    return None if row is None else int(row[0])
