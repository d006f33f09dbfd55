"""Creates the partitions of deliveries (one per log partition), attempts and listeners (one per
UTC day) ahead of need; retire.py drops them. SQL module.

CREATE LIKE + CHECK + ATTACH with a short timeout does not wait while it holds what appends,
forwarders or the drain need. One process at a time leads.
"""

from datetime import UTC, date, datetime, timedelta
from typing import LiteralString, NamedTuple

from psycopg import sql

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("delivery/sql/partitions.sql")

_DAYS = {"attempts": "attempted_at", "listeners": "started_at"}  # what a day's partition is of
_LOCK_TIMEOUT: LiteralString = "SET LOCAL lock_timeout = '200ms'"


class Partition(NamedTuple):
    """A table that holds a part of another."""

    name: str
    parent: str
    bound: sql.Composed  # what ATTACH says
    check: sql.Composed  # the same as a condition, which spares ATTACH its scan


class _Day(NamedTuple):
    """A day that a table has no partition of."""

    parent: str
    day: date


def deliveries_of(group: int) -> Partition:
    """The deliveries of a group's events."""
    number = sql.Literal(group)
    return Partition(
        f"deliveries_p{group}",
        "deliveries",
        sql.SQL("IN ({})").format(number),
        sql.SQL("partition_id = {}").format(number),
    )


def day_of(parent: str, day: date) -> Partition:
    """What a table has of a day."""
    first, end = (
        sql.Literal(datetime(*at.timetuple()[:3], tzinfo=UTC).isoformat())
        for at in (day, day + timedelta(days=1))
    )
    return Partition(
        f"{parent}_{day:%Y%m%d}",
        parent,
        sql.SQL("FROM ({}) TO ({})").format(first, end),
        sql.SQL("{at} >= {first} AND {at} < {end}").format(
            at=sql.Identifier(_DAYS[parent]), first=first, end=end
        ),
    )


async def make_partitions(connection: Connection, *, waits: bool = False) -> bool:
    """Make what is missing for the groups in use and for today and tomorrow, after whoever else is
    about it, or not at all then.

    True if everything is there. On a connection in autocommit mode; raises what psycopg raises,
    LockNotAvailable when somebody holds the table for long.
    """
    missing = await _missing(connection)
    if not missing:
        return True
    async with connection.transaction():
        if waits:
            await connection.execute(SQL["lead_after"])
        elif not await _leads(connection):
            return False
        await connection.execute(_LOCK_TIMEOUT)
        for partition in await _missing(connection):
            await _make(connection, partition)
    return True


async def _leads(connection: Connection) -> bool:
    return bool(await (await scalars(connection).execute(SQL["lead"])).fetchone())


async def _missing(connection: Connection) -> list[Partition]:
    kept = {"kept_days": limits.DELIVERIES_RETAINED_DAYS}
    groups = await scalars(connection).execute(SQL["groups_without_partition"], kept)
    found = [deliveries_of(group) for group in await groups.fetchall()]
    days = await cursor_of(connection, _Day).execute(SQL["days_without_partition"])
    return [*found, *(day_of(one.parent, one.day) for one in await days.fetchall())]


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
