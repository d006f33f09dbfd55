"""Where a stream begins and ends, and the way back through it, whatever it is kept in. SQL module.

Reading itself goes forward only (read.py): a page backward is read from an earlier cursor on.
"""

from typing import NamedTuple

from eventhub.base.errors import LogHole
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
    """A segment as it stands. `last` None: it is still written; `archive`: its path there."""

    uuid: str
    first: int
    last: int | None
    tier: str
    archive: str | None


async def find_segment(log: Log, stream: StreamInfo, uuid: str) -> SegmentInfo | None:
    """A segment of a stream; None if the database has none of that UUID."""
    async with reading(log.pool) as connection:
        query = cursor_of(connection, SegmentInfo)
        return await (await query.execute(SQL["segment"], (stream.id, uuid))).fetchone()


async def stream_ends(log: Log, stream: StreamInfo) -> StreamEnds:
    """As they are now. Raises DatabaseUnavailable, TransientUnavailable."""
    if stream.durability == "transient":
        oldest = await log.transient.resolve(stream.id, "oldest")
        newest = await log.transient.resolve(stream.id, "now")
        return StreamEnds(newest.cursor, oldest.cursor.sequence + 1)
    async with reading(log.pool) as connection:
        query = cursor_of(connection, StreamEnds)
        found = await (await query.execute(SQL["ends"], (stream.id,))).fetchone()
    if found is None:
        raise LogHole("The stream has no head.", stream_id=stream.id)
    return found


async def before(log: Log, stream: StreamInfo, cursor: Cursor, count: int) -> Cursor | None:
    """The cursor up to so many events earlier, with nothing between that cannot be read; None when
    nothing that is earlier can. Raises DatabaseUnavailable, TransientUnavailable.
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
