"""The partitions of deliveries (one per group of the log) and of attempts (one per day, UTC): made
ahead of need, and dropped whole when their time is over. Sql module.

CREATE LIKE + CHECK + ATTACH and DETACH CONCURRENTLY, each with a short timeout: neither waits while
it holds what appends, forwarders or the drain need. One forwarder at a time leads.
"""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import LiteralString, NamedTuple

import psycopg
from psycopg import sql

from eventhub import limits
from eventhub.eventlog import queries
from eventhub.eventlog.database import Connection
from eventhub.logs import get_logger

log = get_logger(__name__)
SQL = queries.load("partitions.sql", Path(__file__).parent.parent / "sql")

_LOCK_TIMEOUT: LiteralString = "SET LOCAL lock_timeout = '200ms'"


class Partition(NamedTuple):
    """A table that holds a part of another."""

    name: str
    parent: str
    bound: sql.Composed  # what ATTACH says
    check: sql.Composed  # the same as a condition, which spares ATTACH its scan


def deliveries_of(group: int) -> Partition:
    """The deliveries of a group's events."""
    number = sql.Literal(group)
    return Partition(
        f"deliveries_g{group}",
        "deliveries",
        sql.SQL("IN ({})").format(number),
        sql.SQL("group_id = {}").format(number),
    )


def attempts_of(day: date) -> Partition:
    """The attempts of a day."""
    first, end = (
        sql.Literal(datetime(*at.timetuple()[:3], tzinfo=UTC).isoformat())
        for at in (day, day + timedelta(days=1))
    )
    return Partition(
        f"attempts_{day:%Y%m%d}",
        "attempts",
        sql.SQL("FROM ({}) TO ({})").format(first, end),
        sql.SQL("at >= {first} AND at < {end}").format(first=first, end=end),
    )


async def make_partitions(connection: Connection) -> bool:
    """Make what is missing for the groups in use and for today and tomorrow.

    True if everything is there. On a connection in autocommit mode; raises what psycopg raises,
    LockNotAvailable when somebody holds the table for long.
    """
    missing = await _missing(connection)
    if not missing:
        return True
    async with connection.transaction():
        if not await _leads(connection):
            return False
        await connection.execute(_LOCK_TIMEOUT)
        for partition in await _missing(connection):
            await _make(connection, partition)
    return True


async def _leads(connection: Connection) -> bool:
    row = await (await connection.execute(SQL["lead"])).fetchone()
    return bool(row and row[0])


async def _missing(connection: Connection) -> list[Partition]:
    kept = {"kept_days": limits.DELIVERIES_KEPT_DAYS}
    groups = await (await connection.execute(SQL["groups_without_partition"], kept)).fetchall()
    days = await (await connection.execute(SQL["days_without_partition"])).fetchall()
    return [*(deliveries_of(row[0]) for row in groups), *(attempts_of(row[0]) for row in days)]


async def _make(connection: Connection, partition: Partition) -> None:
    """Create and attach, inside the caller's transaction."""
    table, parent = sql.Identifier(partition.name), sql.Identifier(partition.parent)
    create = sql.SQL(
        "CREATE TABLE {table} (LIKE {parent} INCLUDING DEFAULTS INCLUDING CONSTRAINTS"
        " INCLUDING STORAGE INCLUDING INDEXES, CONSTRAINT {name} CHECK ({check}))"
    )
    name = sql.Identifier(f"{partition.name}_bound")
    await connection.execute(
        create.format(table=table, parent=parent, name=name, check=partition.check)
    )
    attach = sql.SQL("ALTER TABLE {parent} ATTACH PARTITION {table} FOR VALUES {bound}")
    await connection.execute(attach.format(parent=parent, table=table, bound=partition.bound))
    log.info("partition_made", partition=partition.name)


async def retire(connection: Connection) -> None:
    """Drop the partitions whose time is over, one after another.

    On a connection of its own in autocommit mode: DETACH CONCURRENTLY waits for readers that began
    before. What cannot be done now is done the next time.
    """
    kept = {"kept_days": limits.ATTEMPTS_KEPT_DAYS}
    for row in await (await connection.execute(SQL["days_over"], kept)).fetchall():
        await _drop(connection, "attempts", row[0])
    for row in await (await connection.execute(SQL["detached"])).fetchall():
        await _drop(connection, *row)
    kept = {"kept_days": limits.DELIVERIES_KEPT_DAYS}
    for row in await (await connection.execute(SQL["groups_over"], kept)).fetchall():
        await retire_deliveries_group(connection, row[0])


async def retire_deliveries_group(connection: Connection, group: int) -> bool:
    """Drop the deliveries of a group, after what is still pending moved to the newest group's
    partition with its event's stored bytes.

    False if some are being posted just now: they must end first. Raises ValueError for the newest.
    """
    newest = await _newest_group(connection)
    if group >= newest:
        raise ValueError(f"group {group} is the newest with deliveries")
    values = {
        "group_id": group,
        "newest": newest,
        "rows_max": limits.DELIVERIES_PER_STATEMENT_MAX,
    }
    while (await connection.execute(SQL["move_pending"], values)).rowcount:
        pass
    row = await (await connection.execute(SQL["pending_left"], (group,))).fetchone()
    if row and row[0]:
        log.info("retirement_postponed", group=group, claimed=row[0])
        return False
    await _drop(connection, "deliveries", f"deliveries_g{group}")
    return True


async def _newest_group(connection: Connection) -> int:
    row = await (await connection.execute(SQL["newest_group"])).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


async def _drop(connection: Connection, parent: str, name: str) -> None:
    """Detach, or finish a detachment that was interrupted, and drop."""
    row = await (await connection.execute(SQL["attachment"], (parent, name))).fetchone()
    table, above = sql.Identifier(name), sql.Identifier(parent)
    if row is not None:
        how = sql.SQL("FINALIZE" if row[0] else "CONCURRENTLY")
        detach = sql.SQL("ALTER TABLE {above} DETACH PARTITION {table} {how}")
        await connection.execute(detach.format(above=above, table=table, how=how))
    await connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    log.info("partition_dropped", partition=name)


async def retiring(url: str) -> None:
    """`retire` on a connection of its own. Raises what psycopg raises."""
    timeout = f"-c statement_timeout={int(limits.DETACH_TIMEOUT_S_MAX)}s"
    async with await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        application_name="eventhub retire",
        connect_timeout=limits.CONNECT_TIMEOUT_S,
        options=timeout,
    ) as connection:
        row = await (await connection.execute(SQL["lead_retirement"])).fetchone()
        if row and row[0]:
            await retire(connection)
