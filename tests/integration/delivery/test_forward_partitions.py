"""Partitions of deliveries and attempts: created ahead, and retired after pending deliveries moved,
while readers hold snapshots and appends and forwarders continue.
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
MOMENT_S = 2.0  # appends and forwarders wait no longer; a blocked one would wait for 3 s
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
    """Roll to a new partition of events, whose deliveries have their partition."""
    [[newest]] = world.sql("SELECT max(id) FROM event_partitions")
    async with connection.transaction():
        await create_partition(connection, newest + 1)
    world.sql("UPDATE log_state SET current_partition = %s", newest + 1)
    assert await create_partitions(connection)
    return int(newest) + 1


def add_delivery(
    world: World, stream_id: int, state: str, *, claim_s: int | None = None
) -> tuple[int, int]:
    """Insert a delivery of a new event; return (partition, sequence). `claim_s`: claimed for this
    long.
    """
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


async def test_partitions_exist_ahead_of_need(world: World, connection: Connection) -> None:
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
    added = [
        add_delivery(world, stream_id, state)
        for state in ("pending", "delivered", "dead_lettered", "pending")
    ]
    expired = add_delivery(world, stream_id, "pending", claim_s=0)
    assert {group for group, _ in (*added, expired)} == {old}
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


async def test_claimed_deliveries_move_when_their_claim_expires(
    world: World, connection: Connection
) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=2)
    add_delivery(world, stream_id, "pending", claim_s=40)
    add_delivery(world, stream_id, "pending")
    await next_group(world, connection)
    assert not await retire_deliveries_partition(connection, old, None)
    groups = "SELECT partition_id = %s FROM deliveries WHERE stream_id = %s ORDER BY sequence"
    assert world.sql(groups, old, stream_id) == [(True,), (False,)]
    world.sql("UPDATE deliveries SET state = 'delivered' WHERE partition_id = %s", old)
    assert await retire_deliveries_partition(connection, old, None)
    assert world.sql(groups, old, stream_id) == [(False,)]


@pytest.mark.parametrize("events", [0, 1])
async def test_a_quiet_streams_open_segment_does_not_hold_a_partition_for_good(
    world: World, connection: Connection, events: int
) -> None:
    """It is sealed when it has been open for as long as deliveries are retained, and the partition
    ends as long after that; so it does if the segment is empty.
    """
    old = await next_group(world, connection)
    stream_id = world.stream()
    if events:
        world.emit(stream_id, "a")
    await next_group(world, connection)
    segment = "SELECT id FROM segments WHERE stream_id = %s AND partition_id = %s"
    [[id]] = world.sql(segment, stream_id, old)
    await retire(connection, None)
    assert world.sql("SELECT sealed_at FROM segments WHERE id = %s", id) == [(None,)]
    later = "UPDATE segments SET {0} = {0} - interval '31 days' WHERE partition_id = %s"
    for column in ("opened_at", "sealed_at"):
        assert f"deliveries_p{old}" in tables(world, r"^deliveries_p\d")
        world.sql(later.format(column), old)
        world.sql("UPDATE forwarding f SET sequence = h.sequence FROM heads h"
                  " WHERE h.stream_id = f.stream_id")  # fmt: skip
        await retire(connection, None)
    assert f"deliveries_p{old}" not in tables(world, r"^deliveries_p\d")
    [appended] = world.emit(stream_id, "b")
    assert appended.sequence == events + 1


async def test_the_newest_partition_stays(world: World, connection: Connection) -> None:
    newest = await next_group(world, connection)
    with pytest.raises(ValueError, match="newest"):
        await retire_deliveries_partition(connection, newest, None)


async def test_a_reader_with_an_old_snapshot_delays_nothing_else(
    world: World, connection: Connection
) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=1)
    add_delivery(world, stream_id, "delivered")
    new = await next_group(world, connection)
    add_delivery(world, stream_id, "delivered")  # in the segment that was open before
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
    """Append and write deliveries for two seconds; return the longest time that one took."""
    longest_s, until_s = 0.0, time.monotonic() + 2
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        add_delivery(world, stream_id, "pending")
        longest_s = max(longest_s, time.monotonic() - began_s)
    return longest_s


async def test_expired_partitions_are_retired(world: World, connection: Connection) -> None:
    old = await next_group(world, connection)
    stream_id = world.stream(segment_events_max=1)
    young = world.stream(segment_events_max=1)
    add_delivery(world, stream_id, "delivered")
    late = await next_group(world, connection)
    add_delivery(
        world, young, "delivered"
    )  # its first segment is in the old partition, its next in the late one
    add_delivery(world, stream_id, "delivered")
    await next_group(world, connection)
    add_delivery(world, stream_id, "delivered")
    add_delivery(world, young, "delivered")
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
    assert await create_partitions(connection)  # it is not created again
    assert f"deliveries_p{old}" not in tables(world, r"^deliveries_p\d")


async def test_a_partition_that_is_not_fully_forwarded_stays(
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


async def test_a_partition_with_an_unfinished_fan_out_stays(
    world: World, connection: Connection
) -> None:
    """Even when its events are removed and space is low: its deliveries would have no partition,
    and the batches already written would be dropped before the rest.
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
    assert not await log_retention.drop_oldest_partition(None, connection, True)
    assert table in tables(world, r"^deliveries_p\d")
    assert await expand(connection) == 1
    added = "SELECT count(*) FROM deliveries WHERE stream_id = %s"
    assert world.sql(added, stream_id) == [(count,)]
    await run_retirement(world.url, "")
    assert table not in tables(world, r"^deliveries_p\d")
    assert world.sql(added, stream_id) == [(count,)]  # in the newest partition


async def test_a_locked_table_is_not_waited_for(world: World, connection: Connection) -> None:
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
