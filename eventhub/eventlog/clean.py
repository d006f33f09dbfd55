"""Gives the disk back what was dropped: log-structured cleaning of the events' partitions.

Sql module.

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

from eventhub import limits, metrics
from eventhub.eventlog import queries
from eventhub.eventlog.database import Connection
from eventhub.eventlog.quota import Group, Held, Room, next_to_clean
from eventhub.eventlog.retention import Rooms
from eventhub.logs import get_logger

log = get_logger(__name__)
SQL = queries.load("retention.sql")


class Horizon(NamedTuple):
    """The current group, and transactions by number: the oldest under way, and the next."""

    current: int
    oldest: int
    next: int


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
    row = await (await connection.execute(SQL["horizon"])).fetchone()
    return Horizon(*row) if row else Horizon(0, 0, 0)


async def read_groups(connection: Connection) -> list[Group]:
    """All groups with partitions, the oldest first."""
    return [Group(*row) for row in await (await connection.execute(SQL["groups"])).fetchall()]


async def held_bytes(connection: Connection) -> Held:
    """What the hub's data takes on the disk."""
    row = await (await connection.execute(SQL["used"])).fetchone()
    return Held(*row) if row else Held()


async def clean(connection: Connection, rooms: Rooms, room: Room, fence: Fence) -> bool:
    """Clean one group, if one is worth it; True if one went, so that there may be more.

    Raises what psycopg raises: what was begun goes on the next time.
    """
    now = await horizon(connection)
    if not fence.passed(now):
        return False
    groups = await read_groups(connection)
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
    metrics.GROUPS_DROPPED.inc()
    log.info("group_dropped", group=group.id, bytes=group.size, live=group.live)
    return True


async def forget_groups(connection: Connection) -> None:
    """Delete the rows of groups of which nothing is left."""
    await connection.execute(SQL["forget_groups"])


async def is_exported(connection: Connection, partition: str) -> bool:
    """True while the export of a job is to read a partition, or reads it: it is not detached then,
    and an export lets it go as soon as it can.
    """
    row = await (await connection.execute(SQL["exported"], (partition,))).fetchone()
    return bool(row and row[0])


async def _empty(connection: Connection, group: Group, to: int) -> None:
    """Everything live out of the group: open segments are sealed if they hold something, and moved
    if not; sealed ones are copied.
    """
    of = {"partition_id": group.id}
    rows = await (await connection.execute(SQL["open_in_group"], (group.id,))).fetchall()
    if rows:
        await connection.execute(SQL["roll"], ([row[0] for row in rows],))
    await connection.execute(SQL["move_empty"], of)
    await connection.execute(SQL["move_sealed_empty"], (group.id,))
    bounds = {**of, "rows_max": limits.CLEAN_ROWS_MAX, "bytes_max": limits.CLEAN_BYTES_MAX}
    for segment in await (await connection.execute(SQL["live_in_group"], bounds)).fetchall():
        await _move(connection, group.id, to, segment)


async def _move(connection: Connection, group: int, to: int, segment: tuple[int, int, int]) -> None:
    """Copy a sealed segment (its id, its last sequence, rows in a step), then say where it is."""
    segment_id, last, rows_max = segment
    row = await (await connection.execute(SQL["copied_to"], (to, segment_id))).fetchone()
    after = int(row[0]) if row else 0
    values = {"partition_id": group, "segment_id": segment_id, "to": to, "rows_max": rows_max}
    while after < last:
        page = await (await connection.execute(SQL["copy"], {**values, "after": after})).fetchone()
        if page is None or page[0] is None:
            log.error("cleaning_found_a_hole", segment=segment_id, after=after, last=last)
            return
        after = page[0]
        metrics.CLEANED_BYTES.inc(page[1])
    await connection.execute(SQL["moved"], values)


async def _occupied(connection: Connection, group: Group) -> bool:
    row = await (await connection.execute(SQL["in_group"], {"partition_id": group.id})).fetchone()
    return bool(row and row[0])


async def _remove(connection: Connection, group: Group) -> None:
    """Detach the partition, or finish a detachment, and drop it."""
    table = sql.Identifier(f"events_p{group.id}")
    if group.attached:
        how = sql.SQL("FINALIZE" if group.pending else "CONCURRENTLY")
        detach = sql.SQL("ALTER TABLE events DETACH PARTITION {table} {how}")
        await connection.execute(detach.format(table=table, how=how))
    await connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
