"""A forwarder's write statement and leases: fencing, batches, fan-outs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from delivery.forward.leases import STREAMS, Lease, Leases, StreamPosition, add_streams, position_of
from delivery.forward.plan import MatchedEvent, SegmentRef, batches
from delivery.forward.stream import ForwarderContext, stream_leases
from delivery.forward.stream_matchers import StreamMatchers
from delivery.forward.write import expand, segment_refs, write, writing_pool
from delivery.forward.zone import ZoneCaches
from delivery.partitions.create import create_partitions
from eventhub.access.client_groups import Groups
from eventhub.base import limits
from eventhub.base.clock import ManualClock
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import Connection
from eventhub.types.registry import TypeRegistry
from registrations.catalog import CallbackStream
from registrations.feed import Feed
from tests.integration.forward_world import World, world_database

world = pytest.fixture(scope="module")(world_database)


@pytest.fixture
async def connection(world: World) -> AsyncIterator[Connection]:
    async with writing_pool(world.url) as pool, pool.connection() as connection:
        while not await create_partitions(connection):
            pass
        world.sql("DELETE FROM forwarding")
        world.sql("DELETE FROM forwarders")
        yield connection


@asynccontextmanager
async def forwarder(connection: Connection) -> AsyncIterator[Leases[Lease]]:
    """Yield the leases of one more live forwarder."""
    leases = Leases(ManualClock(), STREAMS)
    await leases.renew(connection)
    yield leases
    await leases.leave(connection)


async def leased(
    world: World, connection: Connection, leases: Leases[Lease]
) -> tuple[Lease, StreamPosition, SegmentRef]:
    """Return a new stream leased by a forwarder."""
    stream_id = world.stream()
    [[segment]] = world.sql("SELECT segment::text FROM heads WHERE stream_id = %s", stream_id)
    await add_streams(connection, [CallbackStream(stream_id, segment, 0)])
    await leases.renew(connection)
    taken = await leases.acquire(connection)
    lease = next(lease for lease in taken if lease.stream_id == stream_id)
    position = await position_of(connection, lease)
    assert position is not None
    refs = await segment_refs(connection, [segment])
    return lease, position, refs[segment]


def matched(
    position: StreamPosition,
    segment: SegmentRef,
    sequence: int,
    registrations: dict[int, list[int]],
) -> MatchedEvent:
    return MatchedEvent(Cursor(position.segment, sequence), segment, registrations)


async def test_checkpoint_and_deliveries_are_written_together(
    world: World, connection: Connection
) -> None:
    async with forwarder(connection) as leases:
        lease, position, segment = await leased(world, connection, leases)
        [one, two] = world.endpoints(2)
        events = [
            matched(position, segment, 2, {two: [7, 9], one: [8]}),
            matched(position, segment, 3, {one: [5]}),
        ]
        [batch] = batches(position, events, Cursor(position.segment, 4))
        assert await write(connection, lease, position, batch)
        expected = [(2, one, [8]), (2, two, [7, 9]), (3, one, [5])]
        assert world.deliveries(lease.stream_id) == expected
        assert await position_of(connection, lease) == StreamPosition(position.segment, 4)
        # a repeat does not start at the stream's position
        assert not await write(connection, lease, position, batch)
        assert world.deliveries(lease.stream_id) == expected


async def test_an_older_epoch_writes_nothing(world: World, connection: Connection) -> None:
    async with forwarder(connection) as first, forwarder(connection) as second:
        lease, position, segment = await leased(world, connection, first)
        await first.release(connection, [lease])
        await second.renew(connection)
        await second.acquire(connection)
        [batch] = batches(
            position, [matched(position, segment, 1, {1: [1]})], Cursor(position.segment, 1)
        )
        assert not await write(connection, lease, position, batch)
        assert world.deliveries(lease.stream_id) == []
        assert await position_of(connection, lease) is None
        now = Lease(lease.stream_id, lease.epoch + 1)
        assert await position_of(connection, now) == position
        assert await write(connection, now, position, batch)


async def test_an_event_for_many_endpoints_is_written_in_batches_and_continues_after_a_crash(
    world: World, connection: Connection
) -> None:
    count = limits.DELIVERIES_PER_STATEMENT_MAX + 1_000
    async with forwarder(connection) as leases:
        lease, position, segment = await leased(world, connection, leases)
        registrations = {endpoint: [endpoint, endpoint + 1] for endpoint in range(1, count + 1)}
        last = Cursor(position.segment, 1)
        context = list(batches(position, [matched(position, segment, 1, registrations)], last))
        assert [len(part.rows) for part in context] == [limits.DELIVERIES_PER_STATEMENT_MAX, 1_000]
        assert await write(connection, lease, position, context[0])
        stored = await position_of(connection, lease)  # as the next owner reads it
        assert stored == StreamPosition(position.segment, 0, limits.DELIVERIES_PER_STATEMENT_MAX)
        [rest] = batches(stored, [matched(position, segment, 1, registrations)], last)
        assert await write(connection, lease, stored, rest)
        found = world.deliveries(lease.stream_id)
        assert found == [(1, endpoint, [endpoint, endpoint + 1]) for endpoint in registrations]


async def test_a_fan_out_is_expanded_by_any_forwarder_each_delivery_once(
    world: World, connection: Connection
) -> None:
    count = limits.FANOUT_ENDPOINTS_MIN + 2_001
    async with forwarder(connection) as leases:
        lease, position, segment = await leased(world, connection, leases)
        registrations = {at: list(range(at, at + 1 + at % 3)) for at in range(1, count + 1)}
        [batch] = batches(
            position, [matched(position, segment, 1, registrations)], Cursor(position.segment, 1)
        )
        assert batch.fanout
        assert await write(connection, lease, position, batch)
        assert await position_of(connection, lease) == StreamPosition(position.segment, 1)
        written = [await expand(connection) for _ in range(4)]
        assert written == [5_000, 5_000, 2_001, 0]
        found = world.deliveries(lease.stream_id)
        assert found == [
            (1, endpoint, registrations) for endpoint, registrations in registrations.items()
        ]
        assert world.sql("SELECT count(*) FROM fanouts") == [(0,)]


async def test_an_older_epoch_writes_no_fan_out(world: World, connection: Connection) -> None:
    """A disconnected forwarder's fan-out would be expanded in addition to that of the
    next owner.
    """
    registrations = {at: [at] for at in range(1, limits.FANOUT_ENDPOINTS_MIN + 2)}
    async with forwarder(connection) as first, forwarder(connection) as second:
        lease, position, segment = await leased(world, connection, first)
        await first.release(connection, [lease])
        await second.renew(connection)
        await second.acquire(connection)
        [batch] = batches(
            position, [matched(position, segment, 1, registrations)], Cursor(position.segment, 1)
        )
        assert batch.fanout
        assert not await write(connection, lease, position, batch)
        assert world.sql("SELECT count(*) FROM fanouts") == [(0,)]
        now = Lease(lease.stream_id, lease.epoch + 1)
        assert await position_of(connection, now) == position
        # nor from another position than the stream's
        elsewhere = position._replace(sequence=position.sequence + 1)
        assert not await write(connection, now, elsewhere, batch)
        assert world.sql("SELECT count(*) FROM fanouts") == [(0,)]


async def test_version_ids_of_reports_are_written_with_each_delivery(
    world: World, connection: Connection
) -> None:
    """Version ids of some endpoints, of one in the middle, of none; as rows and as a fan-out."""
    many = limits.FANOUT_ENDPOINTS_MIN + 6_000
    version_ids = {1: [11], 3: [31, 32], 5_002: [7], many: [8, 9]}
    for count in (4, many):
        async with forwarder(connection) as leases:
            lease, position, segment = await leased(world, connection, leases)
            registrations = {at: [at] for at in range(1, count + 1)}
            last = Cursor(position.segment, 2)
            event = matched(position, segment, 1, registrations)._replace(version_ids=version_ids)
            plain = matched(position, segment, 2, {1: [1]})
            for batch in batches(position, [event, plain], last):
                assert await write(connection, lease, position, batch)
                position = batch.position
            while await expand(connection):
                pass
            found = world.sql(
                "SELECT sequence, endpoint_id, version_ids FROM deliveries WHERE stream_id = %s"
                " AND version_ids IS NOT NULL ORDER BY endpoint_id",
                lease.stream_id,
            )
            assert found == [(1, at, ids) for at, ids in version_ids.items() if at <= count]
            assert len(world.deliveries(lease.stream_id)) == count + 1


async def test_the_setting_of_an_endpoint_counts_when_the_row_is_written(
    world: World, connection: Connection
) -> None:
    async with forwarder(connection) as leases:
        lease, position, segment = await leased(world, connection, leases)
        [plain], [ordered] = world.endpoints(), world.endpoints(ordered=True)
        registrations = {plain: [1], ordered: [2]}
        [batch] = batches(
            position, [matched(position, segment, 1, registrations)], Cursor(position.segment, 1)
        )
        assert await write(connection, lease, position, batch)
        rows = world.sql(
            "SELECT endpoint_id, ordered FROM deliveries WHERE stream_id = %s ORDER BY 1",
            lease.stream_id,
        )
        assert rows == [(plain, False), (ordered, True)]


async def test_forwarders_share_free_streams(world: World, connection: Connection) -> None:
    async with forwarder(connection) as first, forwarder(connection) as second:
        for _ in range(20):
            stream_id = world.stream()
            rows = world.sql("SELECT segment::text FROM heads WHERE stream_id = %s", stream_id)
            await add_streams(connection, [CallbackStream(stream_id, rows[0][0], 0)])
        await first.renew(connection)
        await second.renew(connection)
        one, other = await first.acquire(connection), await second.acquire(connection)
        assert abs(len(one) - len(other)) <= 1
        assert not {lease.stream_id for lease in one} & {lease.stream_id for lease in other}
        assert len(one) + len(other) == first.share.total


async def test_a_lease_expires_by_the_own_clock_until_it_is_renewed(
    world: World, connection: Connection
) -> None:
    clock = ManualClock()
    leases = Leases(clock, STREAMS)
    await leases.renew(connection)
    lease, _, _ = await leased(world, connection, leases)
    clock.advance_s(limits.FORWARD_LEASE_S - 0.1)
    assert leases.alive(lease)
    clock.advance_s(0.2)
    assert not leases.alive(lease)
    assert await leases.renew(connection) == []
    assert leases.alive(lease)
    await leases.leave(connection)


async def test_renewal_waits_for_no_write(world: World, connection: Connection) -> None:
    """One stream's long write does not let other leases expire."""
    clock = ManualClock()
    leases = Leases(clock, STREAMS)
    await leases.renew(connection)
    busy, _, _ = await leased(world, connection, leases)
    other, _, _ = await leased(world, connection, leases)
    with psycopg.connect(world.url) as writer:
        writer.execute("UPDATE forwarding SET sequence = 0 WHERE stream_id = %s", (busy[0],))
        clock.advance_s(limits.FORWARD_LEASE_S)
        await connection.execute("SET lock_timeout = '100ms'")
        assert await leases.renew(connection) == []
        assert leases.alive(other)
        assert not leases.alive(busy)
    leases.renewed(busy, clock.monotonic_s())
    assert leases.alive(busy)
    world.sql("UPDATE forwarding SET epoch = epoch + 1 WHERE stream_id = %s", busy.stream_id)
    assert await leases.renew(connection) == [busy]
    assert leases.held == [other]


async def test_a_write_renews_its_lease(world: World, connection: Connection) -> None:
    async with forwarder(connection) as leases:
        lease, position, segment = await leased(world, connection, leases)
        world.sql("UPDATE forwarding SET expires_at = now() WHERE stream_id = %s", lease.stream_id)
        [batch] = batches(
            position, [matched(position, segment, 1, {1: [1]})], Cursor(position.segment, 1)
        )
        assert await write(connection, lease, position, batch)
        held = "SELECT expires_at > now() FROM forwarding WHERE stream_id = %s"
        assert world.sql(held, lease.stream_id) == [(True,)]


async def test_a_lease_forgotten_while_it_is_renewed_stays_forgotten(
    world: World, connection: Connection
) -> None:
    """Otherwise a process in which nothing forwards the stream would renew it for ever."""
    async with forwarder(connection) as leases:
        gone, _, _ = await leased(world, connection, leases)
        other, _, _ = await leased(world, connection, leases)
        renewal = asyncio.create_task(leases.renew(connection))
        await asyncio.sleep(0)  # the statement is under way
        leases.forget([gone])
        assert await renewal == []
        assert leases.held == [other]


async def test_released_streams_are_not_held_when_the_database_fails(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    leases = Leases(ManualClock(), STREAMS)
    for _ in range(4):
        await leased(world, connection, leases)
    async with Log.open(database_url=world.url) as log, writing_pool(world.url) as pool:
        interests = StreamMatchers(
            log, Feed(log), ZoneCaches(TypeRegistry(log), Groups(log)), tmp_path, lambda: None
        )
        context = ForwarderContext(
            log, pool, leases, interests, ManualClock(), lambda *_: None, lambda: False
        )
        holder = stream_leases(context, world.url)
        for lease in leases.held:
            holder._start(lease)
        async with forwarder(connection):
            await leases.renew(connection)
            away = await psycopg.AsyncConnection.connect(world.url)
            await away.close()
            with pytest.raises(psycopg.OperationalError):
                await holder._share(away)
            assert len(holder.works) == 2
            assert set(leases.held) == set(holder.works)
            await holder.stop()
    assert leases.held == []


@pytest.mark.parametrize("count", [3, limits.FANOUT_ENDPOINTS_MIN + 1])
async def test_the_lanes_of_an_event_are_written_and_marked(
    world: World, connection: Connection, count: int
) -> None:
    """In one statement, or by a fan-out in batches."""
    async with forwarder(connection) as leases:
        lease, position, segment = await leased(world, connection, leases)
        ordered = world.endpoints(2, ordered=True)
        registrations = {each: [7] for each in (*range(10**9, 10**9 + count), *ordered)}
        event = matched(position, segment, 1, registrations)
        event = event._replace(lanes={ordered[0]: -5, 10**9: -9})
        for batch in batches(position, [event], Cursor(position.segment, 1)):
            assert await write(connection, lease, position, batch)
        while await expand(connection):
            pass
    found = world.sql(
        "SELECT endpoint_id, lane FROM deliveries WHERE stream_id = %s AND ordered ORDER BY 1",
        lease.stream_id,
    )
    assert found == [(ordered[0], -5), (ordered[1], None)]
    marked = world.sql("SELECT endpoint_id, stream_id FROM lanes ORDER BY 1")
    assert marked[-2:] == [(ordered[0], -5), (ordered[1], lease.stream_id)]
