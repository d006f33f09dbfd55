"""An event that takes longer to match than a lease lasts does not cost its forwarder the lease."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from delivery.forward.lease_holder import LeaseHolder
from delivery.forward.leases import STREAMS, Lease, Leases, add_streams
from delivery.forward.stream import ForwarderContext, stream_leases
from delivery.forward.stream_matchers import StreamMatchers
from delivery.forward.write import writing_pool
from delivery.forward.zone import ZoneCaches
from delivery.partitions.create import create_partitions
from delivery.patterns.group_runner import GroupRunner
from delivery.patterns.group_tables import GROUPS, GroupLease
from eventhub.access.client_groups import Groups
from eventhub.base import limits, metrics
from eventhub.base.clock import SystemClock
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from eventhub.postgresql.connections import Connection
from eventhub.supervisor.postgres import SOCKET
from eventhub.types.registry import TypeRegistry
from registrations.catalog import CallbackStream
from registrations.feed import Feed
from registrations.filters.normal import normal
from registrations.filters.predicate import parse_predicate
from registrations.matching.cost import every_event_cost
from registrations.matching.spec import specs_of_form
from registrations.matching.strategies import StreamStrategy
from tests.integration.callbacks_world import until
from tests.integration.forward_world import World, world_database
from tests.tcp_relay import relay_to

world = pytest.fixture(scope="module")(world_database)
TESTS = limits.FILTER_FOUND_FREE


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a lease of test length, and the times that depend on it."""
    for name in ("LEASE_S", "RENEW_INTERVAL_S", "ACQUIRE_INTERVAL_S"):
        monkeypatch.setattr(limits, f"FORWARD_{name}", getattr(limits, f"FORWARD_{name}") / 2)


@asynccontextmanager
async def forwarded_stream(
    world: World, tmp_path: Path, url: str = ""
) -> AsyncIterator[tuple[Lease, Connection]]:
    """Yield a stream leased by a running forwarder, and another forwarder's connection. `url`: the
    database from which the forwarder renews its leases.
    """
    async with Log.open(database_url=world.url) as log, writing_pool(world.url) as pool:
        leases, clock = Leases(SystemClock(), STREAMS), SystemClock()
        interests = StreamMatchers(
            log, Feed(log), ZoneCaches(TypeRegistry(log), Groups(log)), tmp_path, lambda: None
        )
        holder = stream_leases(
            ForwarderContext(
                log, pool, leases, interests, clock, lambda piece, notified: None, lambda: False
            ),
            url or world.url,
        )
        async with pool.connection() as connection:
            while not await create_partitions(connection):
                pass
            stream_id = world.stream()
            [[segment]] = world.sql(
                "SELECT segment::text FROM heads WHERE stream_id = %s", stream_id
            )
            await add_streams(connection, [CallbackStream(stream_id, segment, 0)])
            await holder._renew_and_acquire(connection)
            running = asyncio.create_task(holder.run())
            await asyncio.sleep(0)  # it has started
            try:
                yield (
                    next(one for one in leases.held if one.stream_id == stream_id),
                    connection,
                )
            finally:
                running.cancel()
                await holder.stop()


def matched_for(seconds: float) -> int:
    """Match one event for a given time, against filters that share one value and are free of the
    budget; return how many.
    """
    matcher, count = StreamStrategy().new(), 0
    event = Event("d", "t", {"kind": "x", "notes": [f"a{n}b" * 20 for n in range(300)]})
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        matcher = StreamStrategy().new()
        for _ in range(20):
            count += 1
            tests = " ".join(f'(not (wildcard notes "*a{n}c{count}*"))' for n in range(TESTS))
            form = normal(parse_predicate(f'(and (= kind "x") {tests})'))
            assert every_event_cost(form) == 0
            matcher.add(count, specs_of_form(form))
        assert len(matcher.match(event)) == 20
    return count


@pytest.mark.usefixtures("short")
async def test_a_long_match_keeps_its_lease(world: World, tmp_path: Path) -> None:
    """Many small filters with one common value are free of the budget. Together they blocked the
    loop for longer than the lease; the other forwarder started the event again, and so on.
    """
    async with forwarded_stream(world, tmp_path) as (lease, connection):
        assert matched_for(2 * limits.FORWARD_LEASE_S) > 0  # in the event loop: nothing is awaited
        other = Leases(SystemClock(), STREAMS)
        assert await other.acquire(connection) == []
        epoch = "SELECT epoch FROM forwarding WHERE stream_id = %s"
        assert world.sql(epoch, lease.stream_id) == [(lease.epoch,)]


@pytest.mark.usefixtures("short")
async def test_a_loop_that_hangs_loses_its_leases(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FORWARD_HELD_S_MAX", 0.3)
    async with forwarded_stream(world, tmp_path) as (lease, connection):
        matched_for(0.3 + 1.5 * limits.FORWARD_LEASE_S)
        other = Leases(SystemClock(), STREAMS)
        assert lease.stream_id in {one.stream_id for one in await other.acquire(connection)}
        await other.leave(connection)


async def test_a_forwarder_without_a_database_pauses_between_attempts(
    world: World, tmp_path: Path
) -> None:
    """The story: while a stream was to be acquired, it tried again at once, with a whole core."""
    attempts: list[float] = []

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.append(time.monotonic())
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    away = f"postgresql://127.0.0.1:{port}/hub?sslmode=disable&gssencmode=disable"
    async with forwarded_stream(world, tmp_path, away), asyncio.timeout(60):
        while len(attempts) < 6:  # noqa: ASYNC110 - in the background
            await asyncio.sleep(0.01)
    server.close()
    assert attempts[5] - attempts[0] > 4 * limits.HEAD_POLL_INTERVAL_S


async def test_a_forwarder_without_leases_asks_again_soon_while_the_database_is_away(
    world: World,
) -> None:
    """It rested for 30 s, as if it knew that there is no pattern group."""

    def started(lease: GroupLease) -> GroupRunner:
        raise AssertionError(lease)

    leases, folder = Leases(SystemClock(), GROUPS), str(conninfo_to_dict(world.url)["host"])
    with relay_to(f"{folder}/{SOCKET}") as relay:
        relay.stop()
        url = make_conninfo(world.url, host="127.0.0.1", port=relay.port)
        holder = LeaseHolder(leases, url, SystemClock(), started, metrics.PATTERN_GROUPS)
        running = asyncio.create_task(holder.run())
        try:
            await until(lambda: holder._renew_at_s > 0)  # the first attempt failed
            relay.listen()
            heartbeat = "SELECT id FROM forwarders WHERE id = %s"
            await until(lambda: bool(world.sql(heartbeat, leases.owner)), 10)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
