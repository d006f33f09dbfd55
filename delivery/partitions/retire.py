"""Retires partitions of deliveries, attempts and listeners when their time is over: detaches them,
writes them to the archive if there is one, drops them, and records it; and reports on retired
ones for commands. SQL module.

Nobody writes to a detached partition, so the archive has everything that it held. The next run
finishes an interrupted one: the detachment is completed, the same file is written, and only the
transaction that drops the table records it. One process at a time retires.
"""

import asyncio
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from delivery.partitions.archive import ArchivedPartition, PartitionArchive
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.base.logs import get_logger
from eventhub.eventlog.errors import ArchiveUnavailable
from eventhub.eventlog.retention.cleaning import is_exported
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, fetch_all, fetch_value, fetch_values, scalars

log = get_logger(__name__)
SQL = queries.load("delivery/sql/retire.sql")
BlockingConnection = psycopg.Connection[Any]

_RETAINED_DAYS = {
    "attempts": limits.ATTEMPTS_RETAINED_DAYS,
    "listeners": limits.LISTENERS_RETAINED_DAYS,
}


class _Detached(NamedTuple):
    """A partition that is detached, or whose detachment was interrupted."""

    parent: str
    name: str


class Retired(NamedTuple):
    """A retired partition."""

    parent: str
    name: str
    rows: int
    archive: str | None  # the path of its manifest; None: not archived
    reason: str  # why it is not archived: `empty`, `no_archive`, or an error's code


async def retire(connection: Connection, archive: PartitionArchive | None) -> None:
    """Drop the partitions whose time is over, one after another; `archive` is None without an
    archive.

    Needs its own connection in autocommit mode: DETACH CONCURRENTLY waits for readers that started
    before. What cannot be done now is done by the next run.
    """
    for one in await fetch_all(connection, _Detached, SQL["detached"]):
        await _retire(connection, one.parent, one.name, archive)
    for parent, retained_days in _RETAINED_DAYS.items():
        bounds = {"parent": parent, "retained_days": retained_days}
        for name in await fetch_values(connection, SQL["expired_days"], bounds):
            await _retire(connection, parent, name, archive)
    bounds = {"retained_days": limits.DELIVERIES_RETAINED_DAYS}
    await _seal_quiet(connection)
    for partition_id in await fetch_values(connection, SQL["expired_partitions"], bounds):
        await retire_deliveries_partition(connection, partition_id, archive)


async def _seal_quiet(connection: Connection) -> None:
    """Seal the segments that quiet streams have left open in old partitions, some at a time,
    because appends to these streams wait meanwhile.
    """
    streams_max = limits.RETIRE_SEALED_MAX
    bounds = {"retained_days": limits.DELIVERIES_RETAINED_DAYS, "streams_max": streams_max}
    sealed = streams_max
    while sealed >= streams_max:
        sealed = await fetch_value(connection, SQL["seal_quiet"], bounds) or 0
        if sealed:
            log.info("quiet_segments_sealed", count=sealed)


async def retire_deliveries_partition(
    connection: Connection,
    partition_id: int,
    archive: PartitionArchive | None,
    *,
    low_space: bool = False,
) -> bool:
    """Drop a partition of deliveries, after moving what is still pending to the newest partition,
    with the stored bytes of its events. `low_space`: drop it even if the archive is not writable.

    Return False if some are being posted, or have to be exported or archived first. Raise
    ValueError for the newest partition.
    """
    newest = await fetch_value(connection, SQL["newest_partition"]) or 0
    if partition_id >= newest:
        raise ValueError(f"deliveries_p{partition_id} is the newest partition of deliveries")
    values = {
        "partition_id": partition_id,
        "newest": newest,
        "rows_max": limits.DELIVERIES_PER_STATEMENT_MAX,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    while (await connection.execute(SQL["move_pending"], values)).rowcount:
        pass
    claimed = await fetch_value(connection, SQL["pending_left"], (partition_id,))
    if claimed:
        log.info("retirement_postponed", partition_id=partition_id, claimed=claimed)
        return False
    return await _retire(
        connection, "deliveries", f"deliveries_p{partition_id}", archive, low_space=low_space
    )


async def _retire(
    connection: Connection,
    parent: str,
    name: str,
    archive: PartitionArchive | None,
    *,
    low_space: bool = False,
) -> bool:
    """Retire a partition. Return False if an export still reads it or the archive is not writable:
    then it stays, attached if it was.
    """
    if await is_exported(connection, name):
        log.info("retirement_postponed", partition=name, reason="exported")
        return False
    if not low_space and not await _may_drop(connection, name, archive):
        log.warning("retirement_postponed", partition=name, reason=ArchiveUnavailable.code)
        return False
    await _detach(connection, parent, name)
    try:
        seconds_max = (
            limits.PARTITION_ARCHIVE_PRESSED_S_MAX if low_space else limits.PARTITION_ARCHIVE_S_MAX
        )
        retired = await _archive(connection, parent, name, archive, seconds_max)
    except EventHubError as error:
        if not low_space:
            log.warning("retirement_postponed", partition=name, reason=error.code)
            return False
        retired = Retired(parent, name, await _count(connection, name), None, error.code)
    await _drop(connection, retired)
    return True


async def _may_drop(connection: Connection, name: str, archive: PartitionArchive | None) -> bool:
    if archive is None or not await _count(connection, name, rows_max=1):
        return True
    return await asyncio.to_thread(archive.is_writable)


async def _archive(
    connection: Connection,
    parent: str,
    name: str,
    archive: PartitionArchive | None,
    seconds_max: float,
) -> Retired:
    """Archive a detached partition. Raises ArchiveUnavailable, DatabaseUnavailable."""
    if not await _count(connection, name, rows_max=1):
        return Retired(parent, name, 0, None, "empty")
    if archive is None:
        return Retired(parent, name, await _count(connection, name), None, "no_archive")
    archived = await _write_archive(connection, parent, name, archive, seconds_max)
    return Retired(parent, name, archived.rows, archived.manifest, "")


async def _detach(connection: Connection, parent: str, name: str) -> None:
    """Detach a partition, or finish a detachment that was interrupted."""
    is_interrupted = await fetch_value(connection, SQL["attachment"], (parent, name))
    if is_interrupted is not None:
        how = sql.SQL("FINALIZE" if is_interrupted else "CONCURRENTLY")
        detach = sql.SQL("ALTER TABLE {above} DETACH PARTITION {table} {how}")
        table, above = sql.Identifier(name), sql.Identifier(parent)
        await connection.execute(detach.format(above=above, table=table, how=how))


async def _write_archive(
    connection: Connection, parent: str, name: str, archive: PartitionArchive, seconds_max: float
) -> ArchivedPartition:
    """Write the rows to the archive in a thread. Raises ArchiveUnavailable, also after
    `seconds_max`, and DatabaseUnavailable.
    """
    query = await fetch_value(connection, SQL["rows_of"], (name,)) or ""
    writing = asyncio.ensure_future(asyncio.to_thread(archive.write, parent, name, query))
    try:
        for _ in range(int(seconds_max / limits.PARTITION_ARCHIVE_PING_S)):
            if (await asyncio.wait([writing], timeout=limits.PARTITION_ARCHIVE_PING_S))[0]:
                return await writing
            await connection.execute(SQL["ping"])
        raise ArchiveUnavailable(f"The archive did not take {name} within {seconds_max:.0f} s.")
    finally:
        if not writing.done():
            writing.cancel()
            await connection.execute(SQL["end_reader"], (name,))


async def _count(connection: Connection, name: str, rows_max: int | None = None) -> int:
    """Return the number of rows of a partition, up to `rows_max`."""
    count = sql.SQL("SELECT count(*) FROM (SELECT FROM {table} LIMIT {rows_max}) AS found")
    query = count.format(table=sql.Identifier(name), rows_max=sql.Literal(rows_max))
    async with connection.transaction():
        await connection.execute(
            SQL["statement_timeout"], (f"{int(limits.PARTITION_ARCHIVE_S_MAX)}s",)
        )
        return await fetch_value(connection, query) or 0


async def _segments(connection: Connection, retired: Retired) -> str | None:
    """Return ranges of the ids of the segments that a partition of deliveries has rows of. Once the
    rows are gone, an audit cannot tell what these deliveries were.
    """
    if retired.parent != "deliveries" or not retired.rows:
        return None
    held = sql.SQL(
        "SELECT range_agg(int8range(id, id, '[]'))::text"
        " FROM (SELECT DISTINCT segment_id AS id FROM {table}) AS held"
    )
    query = held.format(table=sql.Identifier(retired.name))
    async with connection.transaction():
        await connection.execute(
            SQL["statement_timeout"], (f"{int(limits.PARTITION_ARCHIVE_S_MAX)}s",)
        )
        return await fetch_value(connection, query) or None


async def _drop(connection: Connection, retired: Retired) -> None:
    segments = await _segments(connection, retired)
    async with connection.transaction():
        await connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(retired.name)))
        await connection.execute(SQL["record_retired"], {**retired._asdict(), "segments": segments})
    log.info("partition_dropped", **retired._asdict())


async def run_retirement(url: str, archive_url: str) -> None:
    """Run `retire` on its own connection. Raise what psycopg raises, and ArchiveUnavailable."""
    archive = PartitionArchive(archive_url, url) if archive_url else None
    timeout = f"-c statement_timeout={int(limits.DETACH_TIMEOUT_S_MAX)}s"
    async with await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        application_name="eventhub retire",
        connect_timeout=limits.CONNECT_TIMEOUT_S,
        options=timeout,
    ) as connection:
        if await fetch_value(connection, SQL["lead_retirement"]):
            await retire(connection, archive)
            await connection.execute(SQL["end_retirement"])


class RetiredTally(NamedTuple):
    """The retired partitions of one table that had rows, and the number of these rows."""

    table: str
    archived: int
    archived_rows: int
    lost: int  # dropped without being archived
    lost_rows: int
    waiting: int  # out of use, and not archived yet


class Lost(NamedTuple):
    """A partition dropped without being archived. `reason`: `no_archive`, or an error code."""

    name: str
    rows: int
    at: datetime
    reason: str


def tallies(connection: BlockingConnection) -> list[RetiredTally]:
    return cursor_of(connection, RetiredTally).execute(SQL["tallies"]).fetchall()


def last_lost(connection: BlockingConnection) -> list[Lost]:
    """Return the last partitions dropped without being archived, the newest first."""
    values = (limits.ARCHIVE_FAILURES_SHOWN_MAX,)
    return cursor_of(connection, Lost).execute(SQL["last_lost"], values).fetchall()


def manifests(connection: BlockingConnection) -> list[str]:
    """Return the paths of all partitions' manifests in the archive, the oldest first."""
    return scalars(connection).execute(SQL["manifests"]).fetchall()
