"""Gives the disk back what was dropped: log-structured cleaning of the events' partitions.
SQL module.

A group whose live share is small has its live segments copied into the current group, row by row in
bounded statements; then its partition is detached without stopping anybody, and dropped. Every step
is left as it is by a crash and found again by the next look: copied rows are there already, a
detachment is finalized, a detached table is dropped. Readers that meet a moved segment look up its
group once more (read.py).

One process at a time cleans, on a connection of its own in autocommit mode that holds a lock of the
session; the server ends a session that falls silent.
"""

from typing import NamedTuple

from psycopg import sql

from eventhub.base import limits, metrics
from eventhub.base.logs import get_logger
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.retention.quota import PartitionUse, StorageBudget, StorageUse, next_to_clean
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("eventhub/eventlog/sql/retention.sql")


class Horizon(NamedTuple):
    """The current group, and transactions by number: the oldest under way, and the next."""

    current: int
    oldest: int
    next: int


class _Moving(NamedTuple):
    """A sealed segment that is copied, so many rows in a step."""

    id: int
    last: int
    rows_max: int


class _Copied(NamedTuple):
    """What one step copied: up to which sequence, None if nothing; stored bytes."""

    last: int | None
    bytes: int


class Fence:
    """Says when nobody can write to the groups before the current one any more.

    A transaction that opened a segment in the group that was current then may not be over yet; it
    began before the change was seen here.
    """

    def __init__(self) -> None:
        self._current = 0
        self._begun_before = 0

    def passed(self, horizon: Horizon) -> bool:
        if horizon.current != self._current:
            self._current, self._begun_before = horizon.current, horizon.next
        return horizon.oldest >= self._begun_before


async def horizon(connection: Connection) -> Horizon:
    found = await (await cursor_of(connection, Horizon).execute(SQL["horizon"])).fetchone()
    return found or Horizon(0, 0, 0)


async def read_partitions(connection: Connection) -> list[PartitionUse]:
    """All groups with partitions, the oldest first."""
    return await (await cursor_of(connection, PartitionUse).execute(SQL["partitions"])).fetchall()


async def read_storage_use(connection: Connection) -> StorageUse:
    """What the hub's data takes on the disk."""
    return (
        await (await cursor_of(connection, StorageUse).execute(SQL["storage_use"])).fetchone()
        or StorageUse()
    )


async def clean(
    connection: Connection, rooms: RetentionHooks, room: StorageBudget, fence: Fence
) -> bool:
    """Clean one group, if one is worth it; True if one went, so that there may be more.

    Raises what psycopg raises: what was begun goes on the next time.
    """
    now = await horizon(connection)
    if not fence.passed(now):
        return False
    groups = await read_partitions(connection)
    group = next_to_clean(groups, now.current, room)
    if group is None:
        return False
    if group.attached and not group.pending:
        await _empty(connection, group, now.current)
        if not await rooms.release(connection, group.id) or await _occupied(connection, group):
            log.info("cleaning_postponed", group=group.id)
            return False
    if await is_exported(connection, f"events_p{group.id}"):
        log.info("cleaning_postponed", group=group.id, reason="exported")
        return False
    await _remove(connection, group)
    metrics.PARTITIONS_DROPPED.inc()
    log.info("group_dropped", group=group.id, bytes=group.size, live=group.live)
    return True


async def delete_empty_partitions(connection: Connection) -> None:
    """Delete the rows of groups of which nothing is left."""
    await connection.execute(SQL["delete_empty_partitions"])


async def is_exported(connection: Connection, partition: str) -> bool:
    """True while the export of a job is to read a partition, or reads it: it is not detached then,
    and an export lets it go as soon as it can.
    """
    return bool(
        await (await scalars(connection).execute(SQL["is_exported"], (partition,))).fetchone()
    )


async def _empty(connection: Connection, group: PartitionUse, to: int) -> None:
    """Everything live out of the group: open segments are sealed if they hold something, and moved
    if not; sealed ones are copied.
    """
    of = {"partition_id": group.id}
    query = await scalars(connection).execute(SQL["open_in_partition"], (group.id,))
    if streams := await query.fetchall():
        await connection.execute(SQL["roll"], (streams,))
    await connection.execute(SQL["move_empty"], of)
    await connection.execute(SQL["move_sealed_empty"], (group.id,))
    bounds = {**of, "rows_max": limits.CLEAN_ROWS_MAX, "bytes_max": limits.CLEAN_BYTES_MAX}
    found = await cursor_of(connection, _Moving).execute(SQL["live_in_partition"], bounds)
    for segment in await found.fetchall():
        await _move(connection, group.id, to, segment)


async def _move(connection: Connection, group: int, to: int, segment: _Moving) -> None:
    """Copy a sealed segment, then say where it is."""
    id, last, rows_max = segment
    copied = await scalars(connection).execute(SQL["copied_to"], (to, id))
    after = await copied.fetchone() or 0
    values = {"partition_id": group, "segment_id": id, "to": to, "rows_max": rows_max}
    while after < last:
        query = cursor_of(connection, _Copied)
        page = await (await query.execute(SQL["copy"], {**values, "after": after})).fetchone()
        if page is None or page.last is None:
            log.error("cleaning_found_a_hole", segment=id, after=after, last=last)
            return
        after = page.last
        metrics.CLEANED_BYTES.inc(page.bytes)
    await connection.execute(SQL["moved"], values)


async def _occupied(connection: Connection, group: PartitionUse) -> bool:
    count = await scalars(connection).execute(SQL["left_in_partition"], {"partition_id": group.id})
    return bool(await count.fetchone())


async def _remove(connection: Connection, group: PartitionUse) -> None:
    """Detach the partition, or finish a detachment, and drop it."""
    table = sql.Identifier(f"events_p{group.id}")
    if group.attached:
        how = sql.SQL("FINALIZE" if group.pending else "CONCURRENTLY")
        detach = sql.SQL("ALTER TABLE events DETACH PARTITION {table} {how}")
        await connection.execute(detach.format(table=table, how=how))
    await connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
