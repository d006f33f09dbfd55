"""Retires partitions of deliveries, attempts and listeners at the end of their retention: detaches
them, writes them to the archive if there is one, drops them, and notes that. SQL module.

A detached partition is written to by nobody, so what is archived is what it held. Each step is
found again by the next run: the detachment is finished, the same file is written, and only the
transaction that drops the table notes that it went. One process at a time retires.
"""

import asyncio
from typing import NamedTuple

import psycopg
from psycopg import sql

from delivery.partitions.archive import Kept, Shelf
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.base.logs import get_logger
from eventhub.eventlog.archive.errors import ArchiveUnavailable
from eventhub.eventlog.retention.cleaning import is_exported
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("delivery/sql/retiring.sql")

_KEPT_DAYS = {
    "attempts": limits.ATTEMPTS_RETAINED_DAYS,
    "listeners": limits.LISTENERS_RETAINED_DAYS,
}


class _Detached(NamedTuple):
    """A partition that is detached, or half detached."""

    parent: str
    name: str


class Retired(NamedTuple):
    """A partition that left."""

    parent: str
    name: str
    rows: int
    archive: str | None  # the path of its manifest; None: its rows are nowhere
    why: str  # why it is not archived: `empty`, `no_archive`, or an error's code


async def retire(connection: Connection, shelf: Shelf | None) -> None:
    """Drop the partitions whose time is over, one after another; `shelf` is None without an
    archive.

    On a connection of its own in autocommit mode: DETACH CONCURRENTLY waits for readers that began
    before. What cannot be done now is done the next time.
    """
    detached = await cursor_of(connection, _Detached).execute(SQL["detached"])
    for one in await detached.fetchall():
        await _retire(connection, one.parent, one.name, shelf)
    for parent, days in _KEPT_DAYS.items():
        kept = {"parent": parent, "kept_days": days}
        for name in await (await scalars(connection).execute(SQL["days_over"], kept)).fetchall():
            await _retire(connection, parent, name, shelf)
    kept = {"kept_days": limits.DELIVERIES_RETAINED_DAYS}
    for group in await (await scalars(connection).execute(SQL["groups_over"], kept)).fetchall():
        await retire_deliveries_group(connection, group, shelf)


async def retire_deliveries_group(
    connection: Connection, group: int, shelf: Shelf | None, *, pressed: bool = False
) -> bool:
    """Drop the deliveries of a group, after what is still pending moved to the newest group's
    partition with its event's stored bytes. `pressed`: also when the archive takes nothing.

    False if some are being posted just now, or are to be exported or archived first. Raises
    ValueError for the newest.
    """
    newest = await _newest_group(connection)
    if group >= newest:
        raise ValueError(f"group {group} is the newest with deliveries")
    values = {
        "partition_id": group,
        "newest": newest,
        "rows_max": limits.DELIVERIES_PER_STATEMENT_MAX,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    while (await connection.execute(SQL["move_pending"], values)).rowcount:
        pass
    claimed = await (await scalars(connection).execute(SQL["pending_left"], (group,))).fetchone()
    if claimed:
        log.info("retirement_postponed", group=group, claimed=claimed)
        return False
    return await _retire(connection, "deliveries", f"deliveries_p{group}", shelf, pressed=pressed)


async def _newest_group(connection: Connection) -> int:
    return await (await scalars(connection).execute(SQL["newest_group"])).fetchone() or 0


async def _retire(
    connection: Connection, parent: str, name: str, shelf: Shelf | None, *, pressed: bool = False
) -> bool:
    """False if an export still reads the partition, or the archive takes nothing now: then it
    stays, attached if it was.
    """
    if await is_exported(connection, name):
        log.info("retirement_postponed", partition=name, reason="exported")
        return False
    if not pressed and not await _may_go(connection, name, shelf):
        log.warning("retirement_postponed", partition=name, reason=ArchiveUnavailable.code)
        return False
    await _detach(connection, parent, name)
    try:
        seconds_max = (
            limits.PARTITION_ARCHIVE_PRESSED_S_MAX if pressed else limits.PARTITION_ARCHIVE_S_MAX
        )
        retired = await _archived(connection, parent, name, shelf, seconds_max)
    except EventHubError as error:
        if not pressed:
            log.warning("retirement_postponed", partition=name, reason=error.code)
            return False
        retired = Retired(parent, name, await _count(connection, name), None, error.code)
    await _drop(connection, retired)
    return True


async def _may_go(connection: Connection, name: str, shelf: Shelf | None) -> bool:
    if shelf is None or not await _count(connection, name, rows_max=1):
        return True
    return await asyncio.to_thread(shelf.takes)


async def _archived(
    connection: Connection, parent: str, name: str, shelf: Shelf | None, seconds_max: float
) -> Retired:
    """Raises ArchiveUnavailable, DatabaseUnavailable."""
    if not await _count(connection, name, rows_max=1):
        return Retired(parent, name, 0, None, "empty")
    if shelf is None:
        return Retired(parent, name, await _count(connection, name), None, "no_archive")
    kept = await _keep(connection, parent, name, shelf, seconds_max)
    return Retired(parent, name, kept.rows, kept.manifest, "")


async def _detach(connection: Connection, parent: str, name: str) -> None:
    """Or finish a detachment that was interrupted."""
    query = await scalars(connection).execute(SQL["attachment"], (parent, name))
    is_interrupted = await query.fetchone()
    if is_interrupted is not None:
        how = sql.SQL("FINALIZE" if is_interrupted else "CONCURRENTLY")
        detach = sql.SQL("ALTER TABLE {above} DETACH PARTITION {table} {how}")
        table, above = sql.Identifier(name), sql.Identifier(parent)
        await connection.execute(detach.format(above=above, table=table, how=how))


async def _keep(
    connection: Connection, parent: str, name: str, shelf: Shelf, seconds_max: float
) -> Kept:
    """Have the rows archived in a thread. Raises ArchiveUnavailable, also after that time, and
    DatabaseUnavailable.
    """
    query = await (await scalars(connection).execute(SQL["rows_of"], (name,))).fetchone() or ""
    keeping = asyncio.ensure_future(asyncio.to_thread(shelf.keep, parent, name, query))
    try:
        for _ in range(int(seconds_max / limits.PARTITION_ARCHIVE_PING_S)):
            if (await asyncio.wait([keeping], timeout=limits.PARTITION_ARCHIVE_PING_S))[0]:
                return await keeping
            await connection.execute(SQL["still_here"])
        raise ArchiveUnavailable(f"The archive did not take {name} within {seconds_max:.0f} s.")
    finally:
        if not keeping.done():
            keeping.cancel()
            await connection.execute(SQL["end_reader"], (name,))


async def _count(connection: Connection, name: str, rows_max: int | None = None) -> int:
    """The rows of a partition, or as many as are asked for."""
    count = sql.SQL("SELECT count(*) FROM (SELECT FROM {table} LIMIT {rows_max}) AS found")
    query = count.format(table=sql.Identifier(name), rows_max=sql.Literal(rows_max))
    async with connection.transaction():
        await connection.execute(SQL["be_patient"], (f"{int(limits.PARTITION_ARCHIVE_S_MAX)}s",))
        return await (await scalars(connection).execute(query)).fetchone() or 0


async def _segments(connection: Connection, retired: Retired) -> str | None:
    """Of deliveries: ranges of the ids of the segments that there are some of. An audit cannot tell
    what these were owed, once nobody has the rows.
    """
    if retired.parent != "deliveries" or not retired.rows:
        return None
    held = sql.SQL(
        "SELECT range_agg(int8range(id, id, '[]'))::text"
        " FROM (SELECT DISTINCT segment_id AS id FROM {table}) AS held"
    )
    query = held.format(table=sql.Identifier(retired.name))
    async with connection.transaction():
        await connection.execute(SQL["be_patient"], (f"{int(limits.PARTITION_ARCHIVE_S_MAX)}s",))
        return await (await scalars(connection).execute(query)).fetchone() or None


async def _drop(connection: Connection, retired: Retired) -> None:
    segments = await _segments(connection, retired)
    async with connection.transaction():
        await connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(retired.name)))
        await connection.execute(SQL["note"], {**retired._asdict(), "segments": segments})
    log.info("partition_dropped", **retired._asdict())


async def retiring(url: str, archive_url: str) -> None:
    """`retire` on a connection of its own. Raises what psycopg raises, and ArchiveUnavailable for a
    URL that names no archive.
    """
    shelf = Shelf(archive_url, url) if archive_url else None
    timeout = f"-c statement_timeout={int(limits.DETACH_TIMEOUT_S_MAX)}s"
    async with await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        application_name="eventhub retire",
        connect_timeout=limits.CONNECT_TIMEOUT_S,
        options=timeout,
    ) as connection:
        if await (await scalars(connection).execute(SQL["lead_retirement"])).fetchone():
            await retire(connection, shelf)
            await connection.execute(SQL["retired"])
