"""Creates the partitions of `events` ahead of need, and expires old producers and idempotency
digests. SQL module.

DDL is run here and never in append: CREATE LIKE + CHECK + ATTACH with a short lock timeout, because
CREATE TABLE ... PARTITION OF would block every append behind one slow reader. If no new partition
can be created, append goes on in the current one. maintenance.py calls these functions, in one
process at a time.
"""

from typing import LiteralString, NamedTuple

from psycopg import sql

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.eventlog.retention.quota import StorageBudget, is_cut_short
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("eventhub/eventlog/sql/partitions.sql")

_LOCK_TIMEOUT: LiteralString = "SET LOCAL lock_timeout = '200ms'"


class _State(NamedTuple):
    """The current and the newest partition, how many there are, and the bytes of the current one:
    on the disk, of live events, of all events that were stored in it.
    """

    current: int
    newest: int
    partitions: int
    size: int
    live: int
    stored: int


async def prepare_partitions(connection: Connection, budget: StorageBudget) -> None:
    """Keep one partition ahead of the current one. Advance to it when the current one is full or,
    when space is short, mostly dropped.
    """
    state = await (await cursor_of(connection, _State).execute(SQL["state"])).fetchone()
    if state is None:
        return
    current, newest = state.current, state.newest
    abandoned = is_cut_short(state.live, state.stored, budget)
    if newest > current and (state.size > budget.partition_bytes or abandoned):
        current += 1
        await connection.execute(SQL["set_current_partition"], (current,))
        log.info("partition_advanced", partition=current)
    if newest == current and state.partitions < limits.PARTITIONS_LIVE_MAX:
        async with connection.transaction():
            await connection.execute(_LOCK_TIMEOUT)
            await create_partition(connection, newest + 1)


async def expire_producers(connection: Connection) -> None:
    """Delete superseded incarnations that have not emitted for a week, and those in excess."""
    bounds = {
        "expiry_s": limits.PRODUCER_EXPIRY_S,
        "incarnations_max": limits.PRODUCERS_PER_CLIENT_STREAM_MAX,
    }
    await connection.execute(SQL["expire_producers"], bounds)


async def clear_old_digests(connection: Connection) -> None:
    """Truncate the slot that tomorrow's digests go to: it has those of three days ago."""
    slot = await (await scalars(connection).execute(SQL["expired_digest_slot"])).fetchone()
    if slot is None:
        return
    table = sql.Identifier(f"idempotency_digests_{slot}")
    async with connection.transaction():
        await connection.execute(_LOCK_TIMEOUT)
        await connection.execute(sql.SQL("TRUNCATE {}").format(table))
    log.info("idempotency_digests_expired", slot=slot)


async def create_partition(connection: Connection, partition_id: int) -> None:
    """Create and attach a partition inside the caller's transaction. The CHECK spares ATTACH its
    scan.
    """
    table = sql.Identifier(f"events_p{partition_id}")
    check = sql.Identifier(f"events_p{partition_id}_id")
    number = sql.Literal(partition_id)
    await connection.execute(
        sql.SQL(
            "CREATE TABLE {table} (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS"
            " INCLUDING STORAGE INCLUDING INDEXES,"
            " CONSTRAINT {check} CHECK (partition_id = {number}))"
        ).format(table=table, check=check, number=number)
    )
    await connection.execute(
        sql.SQL("ALTER TABLE events ATTACH PARTITION {table} FOR VALUES IN ({number})").format(
            table=table, number=number
        )
    )
    await connection.execute(SQL["insert_partition"], (partition_id,))
    log.info("partition_created", partition=partition_id)
