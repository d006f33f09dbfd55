"""Makes the events' partitions ahead of need, and lets old producers expire. Sql module.

DDL is done here and never in append: CREATE LIKE + CHECK + ATTACH with a short lock timeout,
because CREATE TABLE ... PARTITION OF would stop every append behind one slow reader. If no new
partition can be made, append goes on in the current one. Every web process runs this; one at a time
leads.
"""

import asyncio
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg_pool import AsyncConnectionPool

from eventhub import limits
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog import queries
from eventhub.eventlog.database import AWAY, Connection, reading
from eventhub.logs import get_logger

log = get_logger(__name__)
SQL = queries.load("maintain.sql")

_LOCK_TIMEOUT: LiteralString = "SET LOCAL lock_timeout = '200ms'"


async def maintain(pool: AsyncConnectionPool[Connection]) -> None:
    """Look every few seconds until cancelled."""
    loop = asyncio.get_running_loop()
    sweep_at_s = loop.time()
    while True:
        try:
            async with reading(pool) as connection:
                await _make_groups(connection)
                if loop.time() >= sweep_at_s:
                    await _expire_producers(connection)
                    sweep_at_s = loop.time() + limits.PRODUCER_SWEEP_INTERVAL_S
        except (DatabaseUnavailable, psycopg.Error, *AWAY) as error:
            log.info("maintenance_postponed", reason=type(error).__name__)
        await asyncio.sleep(limits.MAINTAIN_INTERVAL_S)


async def _make_groups(connection: Connection) -> None:
    async with connection.transaction():
        if not await _leads(connection):
            return
        await connection.execute(_LOCK_TIMEOUT)
        row = await (await connection.execute(SQL["state"])).fetchone()
        if row is None:
            return
        current, newest, count, size_bytes = row
        if newest == current and count < limits.GROUPS_LIVE_MAX:
            await make_group(connection, newest + 1)
        elif newest > current and size_bytes > limits.GROUP_BYTES_MAX:
            await connection.execute(SQL["move_current_group"], (current + 1,))
            log.info("group_moved", group=current + 1)


async def _expire_producers(connection: Connection) -> None:
    bounds = {
        "expiry_s": limits.PRODUCER_EXPIRY_S,
        "kept_max": limits.PRODUCERS_PER_CLIENT_STREAM_MAX,
    }
    async with connection.transaction():
        if await _leads(connection):
            await connection.execute(SQL["expire_producers"], bounds)


async def _leads(connection: Connection) -> bool:
    """True in the one transaction that may maintain now."""
    row = await (await connection.execute(SQL["lead"])).fetchone()
    return bool(row and row[0])


async def make_group(connection: Connection, group_id: int) -> None:
    """Create and attach the partition of a group, inside the caller's transaction.

    The CHECK spares ATTACH its scan.
    """
    table = sql.Identifier(f"events_g{group_id}")
    check = sql.Identifier(f"events_g{group_id}_group")
    number = sql.Literal(group_id)
    await connection.execute(
        sql.SQL(
            "CREATE TABLE {table} (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS"
            " INCLUDING STORAGE INCLUDING INDEXES,"
            " CONSTRAINT {check} CHECK (group_id = {number}))"
        ).format(table=table, check=check, number=number)
    )
    await connection.execute(
        sql.SQL("ALTER TABLE events ATTACH PARTITION {table} FOR VALUES IN ({number})").format(
            table=table, number=number
        )
    )
    await connection.execute(SQL["announce_group"], (group_id,))
    log.info("group_made", group=group_id)
