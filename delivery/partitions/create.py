"""Creates the partitions of deliveries (one per partition of events), and of attempts and listeners
(one per day, UTC) ahead of need; retire.py drops them. SQL module.

CREATE LIKE + CHECK + ATTACH with a short timeout does not wait while holding what appends,
forwarders or dispatchers need. One process at a time creates partitions.
"""

from datetime import UTC, date, datetime, timedelta
from typing import LiteralString, NamedTuple

from psycopg import sql

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value, fetch_values

log = get_logger(__name__)
SQL = queries.load("delivery/sql/partitions.sql")

_DAYS = {"attempts": "attempted_at", "listeners": "started_at"}  # what a day's partition is of
_LOCK_TIMEOUT: LiteralString = "SET LOCAL lock_timeout = '200ms'"


class Partition(NamedTuple):
    """A partition to be created."""

    name: str
    parent: str
    bound: sql.Composed  # what ATTACH says
    check: sql.Composed  # the same as a condition, which spares ATTACH its scan


class _Day(NamedTuple):
    """A day for which a table has no partition."""

    parent: str
    day: date


def deliveries_partition(partition_id: int) -> Partition:
    """Return the partition for the deliveries of a partition of events."""
    number = sql.Literal(partition_id)
    return Partition(
        f"deliveries_p{partition_id}",
        "deliveries",
        sql.SQL("IN ({})").format(number),
        sql.SQL("partition_id = {}").format(number),
    )


def day_partition(parent: str, day: date) -> Partition:
    """Return the partition of a table for a day."""
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


async def create_partitions(connection: Connection, *, wait: bool = False) -> bool:
    """Create the partitions missing for the event partitions in use, and for today and tomorrow.
    `wait`: wait for another process that is creating some; otherwise return False.

    Return True if everything exists. Needs a connection in autocommit mode; raises what psycopg
    raises, LockNotAvailable if a session locks the table for long.
    """
    missing = await _missing(connection)
    if not missing:
        return True
    async with connection.transaction():
        if wait:
            await connection.execute(SQL["lead_waiting"])
        elif not await fetch_value(connection, SQL["lead"]):
            return False
        await connection.execute(_LOCK_TIMEOUT)
        for partition in await _missing(connection):
            await _create(connection, partition)
    return True


async def _missing(connection: Connection) -> list[Partition]:
    retained = {"retained_days": limits.DELIVERIES_RETAINED_DAYS}
    ids = await fetch_values(connection, SQL["missing_partitions"], retained)
    days = await fetch_all(connection, _Day, SQL["missing_days"])
    return [*map(deliveries_partition, ids), *(day_partition(one.parent, one.day) for one in days)]


async def _create(connection: Connection, partition: Partition) -> None:
    """Create and attach a partition inside the caller's transaction."""
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
    log.info("partition_created", partition=partition.name)
