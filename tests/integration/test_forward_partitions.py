"""Partitions of deliveries and attempts: made ahead, retired with what is pending moved on, while
readers hold snapshots and appends and forwarders go on.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg import sql

from delivery import log_retention
from delivery.forward.write import expand
from delivery.partitions.create import create_partitions
from delivery.partitions.retire import retire, retire_deliveries_partition, run_retirement
from eventhub.base import limits
from eventhub.eventlog.partitions import create_partition
from eventhub.postgresql.connections import Connection, connect
from tests.integration.forward_world import World, world_database

database = pytest.fixture(scope="module")(world_database)
MOMENT_S = 2.0  # nothing that appends or forwards waits longer; who is stalled waits for 3 s
TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ %s ORDER BY oid"


@pytest.fixture
async def connection(database: World) -> AsyncIterator[Connection]:
    connection = await connect(database.url, name="test")
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
def world(database: World) -> Iterator[World]:
    database.sql("UPDATE heads SET sequence = sequence")  # it answers
    yield database


def tables(world: World, pattern: str) -> list[str]:
    return [row[0] for row in world.sql(TABLES, pattern)]


async def next_group(world: World, connection: Connection) -> int:
    """Segments rolled from now on go to a new group, and its deliveries have their partition."""
    [[newest]] = world.sql("SELECT max(id) FROM event_partitions")
    async with connection.transaction():
        await create_partition(connection, newest + 1)
    world.sql("UPDATE log_state SET current_partition = %s", newest + 1)
    assert await create_partitions(connection)
    return int(newest) + 1


def owe(world: World, stream_id: int, state: str, *, claim_s: int | None = None) -> tuple[int, int]:
    """A delivery of a new event; (group, sequence). `claim_s`: claimed for so long."""
    [appended] = world.emit(stream_id, "a")
    [[group]] = world.sql(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " registrations, version_ids, state, claim, next_attempt_at)"
        " SELECT s.partition_id, 7, s.id, %s, s.stream_id, '{1}', '{11}', %s,"
        "  CASE WHEN %s::integer IS NULL THEN NULL ELSE gen_random_uuid() END,"
        "  now() + make_interval(secs => COALESCE(%s, 0))"
        " FROM segments s WHERE s.uuid = %s::uuid RETURNING partition_id",
        *(appended.sequence, state, claim_s, claim_s, appended.segment),
    )
    return group, appended.sequence


async def test_partitions_are_there_before_they_are_needed(
    world: World, connection: Connection
) -> None:
    assert await create_partitions(connection)
    made = tables(world, r"^(deliveries_p|attempts_)\d")
    assert len([name for name in made if name.startswith("attempts_")]) == 2
    [[groups]] = world.sql("SELECT count(*) FROM event_partitions WHERE id >="
                           " (SELECT current_partition FROM log_state)")  # fmt: skip
    assert len([name for name in made if name.startswith("deliveries_")]) >= groups
    group = await next_group(world, connection)
    assert f"deliveries_p{group}" in tables(world, r"^deliveries_p\d")
    assert await create_partitions(connection)


async def test_pending_deliveries_move_with_their_events_bytes(
    world: World, connection: Connection
) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=5)
    owed = [
        owe(world, stream_id, state)
        for state in ("pending", "delivered", "dead_lettered", "pending")
    ]
    expired = owe(world, stream_id, "pending", claim_s=0)
    assert {group for group, _ in (*owed, expired)} == {old}
    new = await next_group(world, connection)
    [[payload]] = world.sql(
        "SELECT payload FROM events WHERE partition_id = %s AND sequence = 1", old
    )
    assert await retire_deliveries_partition(connection, old, None)
    assert f"deliveries_p{old}" not in tables(world, r"^deliveries_p\d")
    found = world.sql(
        "SELECT partition_id, sequence, state, claim, version_ids, payload IS NOT NULL FROM"
        " deliveries"
        " WHERE stream_id = %s ORDER BY sequence",
        stream_id,
    )
    assert found == [(new, at, "pending", None, [11], True) for at in (1, 4, 5)]
    first = "SELECT payload FROM deliveries WHERE stream_id = %s AND sequence = 1"
    assert world.sql(first, stream_id) == [(payload,)]


async def test_claimed_deliveries_wait_for_the_end_of_their_claim(
    world: World, connection: Connection
) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=2)
    owe(world, stream_id, "pending", claim_s=40)
    owe(world, stream_id, "pending")
    await next_group(world, connection)
    assert not await retire_deliveries_partition(connection, old, None)
    groups = "SELECT partition_id = %s FROM deliveries WHERE stream_id = %s ORDER BY sequence"
    assert world.sql(groups, old, stream_id) == [(True,), (False,)]
    world.sql("UPDATE deliveries SET state = 'delivered' WHERE partition_id = %s", old)
    assert await retire_deliveries_partition(connection, old, None)
    assert world.sql(groups, old, stream_id) == [(False,)]


async def test_the_newest_group_stays(world: World, connection: Connection) -> None:
    newest = await next_group(world, connection)
    with pytest.raises(ValueError, match="newest"):
        await retire_deliveries_partition(connection, newest, None)


async def test_a_reader_with_an_old_snapshot_stalls_nobody(
    world: World, connection: Connection
) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=1)
    owe(world, stream_id, "delivered")
    new = await next_group(world, connection)
    owe(world, stream_id, "delivered")  # in the segment that was open before
    with psycopg.connect(world.url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        count = "SELECT count(*) FROM deliveries WHERE stream_id = %s"
        assert reader.execute(count, (stream_id,)).fetchall() == [(2,)]
        await connection.execute("SET statement_timeout = '3s'")
        retirement = asyncio.create_task(retire_deliveries_partition(connection, old, None))
        longest_s = await asyncio.to_thread(work, world, stream_id)
        assert longest_s < MOMENT_S
        with pytest.raises(psycopg.errors.QueryCanceled):
            await retirement
        assert reader.execute(count, (stream_id,)).fetchall() == [(2,)]
    await connection.execute("RESET statement_timeout")
    assert f"deliveries_p{old}" in tables(world, r"^deliveries_p\d")
    await retire(connection, None)  # finishes what was interrupted
    assert f"deliveries_p{old}" not in tables(world, r"^deliveries_p\d")
    assert f"deliveries_p{new}" in tables(world, r"^deliveries_p\d")


def work(world: World, stream_id: int) -> float:
    """Append and write deliveries for two seconds; the longest that one took."""
    longest_s, until_s = 0.0, time.monotonic() + 2
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        owe(world, stream_id, "pending")
        longest_s = max(longest_s, time.monotonic() - began_s)
    return longest_s


async def test_what_is_over_goes_by_itself(world: World, connection: Connection) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=1)
    young = world.stream(segment_events_max=1)
    owe(world, stream_id, "delivered")
    late = await next_group(world, connection)
    owe(world, young, "delivered")  # its first segment is of the old group, its next of the late
    owe(world, stream_id, "delivered")
    await next_group(world, connection)
    owe(world, stream_id, "delivered")
    owe(world, young, "delivered")
    day = "attempts_20200101"
    world.sql(f"CREATE TABLE {day} (LIKE attempts INCLUDING ALL)")
    world.sql(
        f"ALTER TABLE attempts ATTACH PARTITION {day} FOR VALUES FROM ('2020-01-01') TO"
        " ('2020-01-02')"
    )
    await run_retirement(world.url, "")
    assert tables(world, f"^{day}$") == []
    assert f"deliveries_p{old}" in tables(world, r"^deliveries_p\d")  # sealed a moment ago
    world.sql(
        "UPDATE segments SET sealed_at = now() - make_interval(days => %s) WHERE partition_id = %s",
        *(limits.DELIVERIES_RETAINED_DAYS + 1, old),
    )
    await run_retirement(world.url, "")
    left = tables(world, r"^deliveries_p\d")
    assert f"deliveries_p{old}" not in left
    assert f"deliveries_p{late}" in left
    assert await create_partitions(connection)  # it is not made again
    assert f"deliveries_p{old}" not in tables(world, r"^deliveries_p\d")


async def test_a_group_that_is_not_wholly_forwarded_stays(
    world: World, connection: Connection
) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=1)
    [appended] = world.emit(stream_id, "a")
    world.sql(
        "INSERT INTO forwarding (stream_id, segment, sequence) VALUES (%s, %s, 0)",
        *(stream_id, appended.segment),
    )
    await next_group(world, connection)
    world.emit(stream_id, "a")
    world.sql("UPDATE segments SET sealed_at = '2020-01-01' WHERE partition_id = %s", old)
    await run_retirement(world.url, "")
    assert f"deliveries_p{old}" in tables(world, r"^deliveries_p\d")
    world.sql("UPDATE forwarding SET sequence = 2 WHERE stream_id = %s", stream_id)
    await run_retirement(world.url, "")
    assert f"deliveries_p{old}" not in tables(world, r"^deliveries_p\d")


async def test_a_group_whose_fan_out_is_being_written_stays(
    world: World, connection: Connection
) -> None:
    """Also when its events have gone and space is short: its deliveries would have nowhere to go,
    and the pieces that are written already would be dropped before the rest.
    """
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=1)
    count = limits.DELIVERIES_PER_STATEMENT_MAX + 1
    world.emit(stream_id, "a")
    world.sql(
        "INSERT INTO fanouts (partition_id, stream_id, segment_id, sequence, endpoints,"
        " registrations,"
        " ends, total) SELECT %s, %s, id, 1, n, n, n, %s FROM segments,"
        " (SELECT array_agg(i) AS n FROM generate_series(1, %s) AS i) AS numbers"
        " WHERE stream_id = %s AND first = 1",
        *(old, stream_id, count, count, stream_id),
    )
    await next_group(world, connection)
    world.emit(stream_id, "a")
    world.sql("UPDATE segments SET sealed_at = '2020-01-01' WHERE partition_id = %s", old)
    world.sql(f"ALTER TABLE events DETACH PARTITION events_p{old}")
    world.sql(f"DROP TABLE events_p{old}")
    table = f"deliveries_p{old}"
    assert await expand(connection) == limits.DELIVERIES_PER_STATEMENT_MAX
    await run_retirement(world.url, "")
    assert not await log_retention.shed(None, connection, True)
    assert table in tables(world, r"^deliveries_p\d")
    assert await expand(connection) == 1
    owed = "SELECT count(*) FROM deliveries WHERE stream_id = %s"
    assert world.sql(owed, stream_id) == [(count,)]
    await run_retirement(world.url, "")
    assert table not in tables(world, r"^deliveries_p\d")
    assert world.sql(owed, stream_id) == [(count,)]  # in the newest group


async def test_a_table_that_is_held_is_not_waited_for(world: World, connection: Connection) -> None:
    [[newest]] = world.sql("SELECT max(id) FROM event_partitions")
    async with connection.transaction():
        await create_partition(connection, newest + 1)
    with psycopg.connect(world.url) as holder:
        holder.execute("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
        began_s = time.monotonic()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await create_partitions(connection)
        assert time.monotonic() - began_s < MOMENT_S
    assert await create_partitions(connection)
    attached = sql.SQL("SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = {}"
                       "::regclass").format(sql.Literal(f"deliveries_p{newest + 1}"))  # fmt: skip
    assert world.sql(attached.as_string()) == [("deliveries",)]
