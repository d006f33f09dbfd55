"""Log-structured cleaning of the partitions of `events`: frees the space of dropped segments.
SQL module.

The live segments of a partition with a small live share are copied to the current partition, row by
row in bounded statements; then the partition is detached without blocking readers or writers, and
dropped. A crash leaves a step that the next run completes: copied rows are skipped, a detachment is
finalized, a detached table is dropped. A reader that meets a moved segment looks up its partition
once more (read.py).

One process at a time cleans, on a connection in autocommit mode whose session holds a lock; the
server ends a session that is idle for long.
"""

from typing import NamedTuple

from psycopg import sql

from eventhub.base import limits, metrics
from eventhub.base.logs import get_logger
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.retention.quota import (
    PartitionUse,
    StorageBudget,
    StorageBytes,
    next_to_clean,
)
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("eventhub/eventlog/sql/retention.sql")


class Horizon(NamedTuple):
    """The current partition, and transaction ids: of the oldest running transaction, and of the
    next one.
    """

    current: int
    oldest: int
    next: int


class _Moving(NamedTuple):
    """A sealed segment that is copied, at most `rows_max` rows at a time."""

    id: int
    last: int
    rows_max: int


class _Copied(NamedTuple):
    """The rows copied by one step: the last sequence, None if there were none, and stored bytes."""

    last: int | None
    bytes: int


class Fence:
    """Detects when no transaction can write to the partitions before the current one any more.

    A transaction that opened a segment in an earlier partition may still be running; it started
    before this process saw the current partition change.
    """

    def __init__(self) -> None:
        self._current = 0
        self._started_before = 0

    def passed(self, horizon: Horizon) -> bool:
        """Return whether all transactions that may write to earlier partitions have ended."""
        if horizon.current != self._current:
            self._current, self._started_before = horizon.current, horizon.next
        return horizon.oldest >= self._started_before


async def horizon(connection: Connection) -> Horizon:
    """Return the current horizon."""
    found = await (await cursor_of(connection, Horizon).execute(SQL["horizon"])).fetchone()
    return found or Horizon(0, 0, 0)


async def read_partitions(connection: Connection) -> list[PartitionUse]:
    """Return the use of all partitions, the oldest first."""
    return await (await cursor_of(connection, PartitionUse).execute(SQL["partitions"])).fetchall()


async def read_storage_use(connection: Connection) -> StorageBytes:
    """Return the bytes that the hub's data uses on the disk."""
    return (
        await (await cursor_of(connection, StorageBytes).execute(SQL["storage_use"])).fetchone()
        or StorageBytes()
    )


async def clean(
    connection: Connection, hooks: RetentionHooks, budget: StorageBudget, fence: Fence
) -> bool:
    """Clean one partition, if one is worth it. Return True if one was dropped: there may be more.

    Raises psycopg.Error; the next call continues the interrupted work.
    """
    now = await horizon(connection)
    if not fence.passed(now):
        return False
    partitions = await read_partitions(connection)
    partition = next_to_clean(partitions, now.current, budget)
    if partition is None:
        return False
    if partition.attached and not partition.pending:
        await _empty(connection, partition, now.current)
        if not await hooks.release(connection, partition.id) or await _occupied(
            connection, partition
        ):
            log.info("cleaning_postponed", partition=partition.id)
            return False
    if await is_exported(connection, f"events_p{partition.id}"):
        log.info("cleaning_postponed", partition=partition.id, reason="exported")
        return False
    await _remove(connection, partition)
    metrics.PARTITIONS_DROPPED.inc()
    log.info("partition_dropped", partition=partition.id, bytes=partition.size, live=partition.live)
    return True


async def delete_empty_partitions(connection: Connection) -> None:
    """Delete the rows of partitions without tables."""
    await connection.execute(SQL["delete_empty_partitions"])


async def is_exported(connection: Connection, partition: str) -> bool:
    """Return whether the export of a job holds or will hold a partition. Then it is not detached;
    an export releases it as soon as it can.
    """
    found = await scalars(connection).execute(SQL["is_exported"], (partition,))
    return bool(await found.fetchone())


async def _empty(connection: Connection, partition: PartitionUse, to: int) -> None:
    """Move everything live out of the partition: seal open segments with events, move empty ones,
    copy sealed ones.
    """
    of = {"partition_id": partition.id}
    query = await scalars(connection).execute(SQL["open_in_partition"], (partition.id,))
    if streams := await query.fetchall():
        await connection.execute(SQL["roll"], (streams,))
    await connection.execute(SQL["move_empty"], of)
    await connection.execute(SQL["move_sealed_empty"], (partition.id,))
    bounds = {**of, "rows_max": limits.CLEAN_ROWS_MAX, "bytes_max": limits.CLEAN_BYTES_MAX}
    found = await cursor_of(connection, _Moving).execute(SQL["live_in_partition"], bounds)
    for segment in await found.fetchall():
        await _move(connection, partition.id, to, segment)


async def _move(connection: Connection, partition: int, to: int, segment: _Moving) -> None:
    """Copy a sealed segment, then set its new partition."""
    id, last, rows_max = segment
    copied = await scalars(connection).execute(SQL["copied_to"], (to, id))
    after = await copied.fetchone() or 0
    values = {"partition_id": partition, "segment_id": id, "to": to, "rows_max": rows_max}
    while after < last:
        query = cursor_of(connection, _Copied)
        page = await (await query.execute(SQL["copy"], {**values, "after": after})).fetchone()
        if page is None or page.last is None:
            log.error("cleaning_found_hole", segment=id, after=after, last=last)
            return
        after = page.last
        metrics.CLEANED_BYTES.inc(page.bytes)
    await connection.execute(SQL["moved"], values)


async def _occupied(connection: Connection, partition: PartitionUse) -> bool:
    values = {"partition_id": partition.id}
    count = await scalars(connection).execute(SQL["left_in_partition"], values)
    return bool(await count.fetchone())


async def _remove(connection: Connection, partition: PartitionUse) -> None:
    """Detach the partition, or finish its detachment, and drop it."""
    table = sql.Identifier(f"events_p{partition.id}")
    if partition.attached:
        how = sql.SQL("FINALIZE" if partition.pending else "CONCURRENTLY")
        detach = sql.SQL("ALTER TABLE events DETACH PARTITION {table} {how}")
        await connection.execute(detach.format(table=table, how=how))
    await connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
