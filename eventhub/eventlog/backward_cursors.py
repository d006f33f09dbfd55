"""The ends of a stream, and the cursors for paging backward, for streams in PostgreSQL and Redis.
SQL module.

Events are read forward only (read.py): a page backward is read from an earlier cursor on.
"""

from typing import NamedTuple

from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor, StreamInfo
from eventhub.postgresql import queries
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/eventlog/sql/history.sql")


class StreamEnds(NamedTuple):
    """The last event of a stream, and the first sequence that can be read."""

    head: Cursor
    first: int


class SegmentInfo(NamedTuple):
    """A segment. `last` None: it is open; `archive`: its path in the archive."""

    uuid: str
    first: int
    last: int | None
    tier: str
    archive: str | None


async def find_segment(log: Log, stream: StreamInfo, uuid: str) -> SegmentInfo | None:
    """Return the stream's segment with that UUID, or None."""
    async with reading(log.pool) as connection:
        query = cursor_of(connection, SegmentInfo)
        return await (await query.execute(SQL["segment"], (stream.id, uuid))).fetchone()


async def stream_ends(log: Log, stream: StreamInfo) -> StreamEnds:
    """Return the present ends of a stream. Raises DatabaseUnavailable, TransientUnavailable."""
    if stream.durability == "transient":
        oldest = await log.transient.resolve(stream.id, "oldest")
        newest = await log.transient.resolve(stream.id, "now")
        return StreamEnds(newest.cursor, oldest.cursor.sequence + 1)
    async with reading(log.pool) as connection:
        query = cursor_of(connection, StreamEnds)
        found = await (await query.execute(SQL["ends"], (stream.id,))).fetchone()
    if found is None:
        raise StreamDeleted
    return found


async def before(log: Log, stream: StreamInfo, cursor: Cursor, count: int) -> Cursor | None:
    """Return the cursor up to `count` events earlier such that all events between are readable;
    None if no earlier event is. Raises DatabaseUnavailable, TransientUnavailable.
    """
    if stream.durability == "transient":
        oldest = (await log.transient.resolve(stream.id, "oldest")).cursor
        low = max(oldest.sequence, cursor.sequence - count)
        return Cursor(oldest.segment, low) if low < cursor.sequence else None
    values = {"stream_id": stream.id, "sequence": cursor.sequence, "count": count}
    async with reading(log.pool) as connection:
        query = cursor_of(connection, Cursor)
        found = await (await query.execute(SQL["before"], values)).fetchone()
    return None if found is None or found.sequence >= cursor.sequence else found
