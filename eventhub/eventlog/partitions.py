"""Makes the events' partitions ahead of need, and lets old producers and digests of ids expire.
SQL module.

DDL is done here and never in append: CREATE LIKE + CHECK + ATTACH with a short lock timeout,
because CREATE TABLE ... PARTITION OF would stop every append behind one slow reader. If no new
partition can be made, append goes on in the current one. The upkeep calls these, in one process at
a time.
"""

from typing import LiteralString, NamedTuple

from psycopg import sql

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.eventlog.retention.quota import StorageBudget, is_left
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("eventhub/eventlog/sql/partitions.sql")

_LOCK_TIMEOUT: LiteralString = "SET LOCAL lock_timeout = '200ms'"


class _State(NamedTuple):
    """The current group, the newest, how many there are, and what the current one holds, in bytes:
    on the disk, of live events, of all that was stored in it.
    """

    current: int
    newest: int
    partitions: int
    size: int
    live: int
    stored: int


async def prepare_partitions(connection: Connection, room: StorageBudget) -> None:
    """One group ahead of the current one; a current one that is full, or under pressure mostly
    dropped, is left for it.
    """
    state = await (await cursor_of(connection, _State).execute(SQL["state"])).fetchone()
    if state is None:
        return
    current, newest = state.current, state.newest
    left = is_left(state.live, state.stored, room)
    if newest > current and (state.size > room.group_bytes or left):
        current += 1
        await connection.execute(SQL["set_current_partition"], (current,))
        log.info("group_moved", group=current)
    if newest == current and state.partitions < limits.PARTITIONS_LIVE_MAX:
        async with connection.transaction():
            await connection.execute(_LOCK_TIMEOUT)
            await create_partition(connection, newest + 1)


async def expire_producers(connection: Connection) -> None:
    """Forget superseded incarnations that were not seen for long."""
    bounds = {
        "expiry_s": limits.PRODUCER_EXPIRY_S,
        "kept_max": limits.PRODUCERS_PER_CLIENT_STREAM_MAX,
    }
    await connection.execute(SQL["expire_producers"], bounds)


async def clear_old_digests(connection: Connection) -> None:
    """Empty the slot that tomorrow's digests will go to: it holds those of three days ago."""
    slot = await (await scalars(connection).execute(SQL["expired_digest_slot"])).fetchone()
    if slot is None:
        return
    table = sql.Identifier(f"idempotency_digests_{slot}")
    async with connection.transaction():
        await connection.execute(_LOCK_TIMEOUT)
        await connection.execute(sql.SQL("TRUNCATE {}").format(table))
    log.info("idempotency_digests_forgotten", slot=slot)


async def create_partition(connection: Connection, partition_id: int) -> None:
    """Create and attach the partition of a group, inside the caller's transaction.

    The CHECK spares ATTACH its scan.
    """
    table = sql.Identifier(f"events_p{partition_id}")
    check = sql.Identifier(f"events_p{partition_id}_group")
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
    log.info("group_made", group=partition_id)
