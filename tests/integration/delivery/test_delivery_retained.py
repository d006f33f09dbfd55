"""Deliveries and the log's retention: forwarders state what they need, and pending deliveries
outlive their events.
"""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import NamedTuple

import pytest

from delivery import log_retention
from delivery.callbacks import claimed_events, claims
from delivery.callbacks.claimed_groups import claim_groups
from delivery.callbacks.load import Loader
from delivery.partitions.create import create_partitions
from delivery.partitions.retire import retire_deliveries_partition
from eventhub.base.clock import SystemClock
from eventhub.eventlog.partitions import prepare_partitions
from eventhub.eventlog.retention.cleaning import Fence, clean, delete_empty_partitions
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.postgresql.connections import Connection
from registrations.endpoints.secrets import Keyring
from tests.integration.forward_world import World, world_database
from tests.integration.retention_world import connected, next_group

database = pytest.fixture(scope="module")(world_database)
MIB = 1024 * 1024
SHED = partial(log_retention.drop_oldest_partition, None)
HOOKS = RetentionHooks(
    needs=log_retention.lowest_needed_sequences,
    release=log_retention.copy_pending_payloads,
    shed=SHED,
)
TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname IN ('events_p' || %s,"
    " 'deliveries_p' || %s)"
)


@pytest.fixture
def world(database: World) -> Iterator[World]:
    yield database


@pytest.fixture
async def connection(database: World) -> AsyncIterator[Connection]:
    connection = await claims.open_connection(database.url, "test")
    yield connection
    await connection.close()


async def new_group(world: World) -> int:
    group = await next_group(world.url)
    async with connected(world.url) as connection:
        assert await create_partitions(connection)
    return group


def add_delivery(world: World, stream_id: int, sequence: int, state: str = "pending") -> None:
    """Insert a delivery of an existing event."""
    world.sql(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " registrations, state) SELECT s.partition_id, 7, s.id, %s, s.stream_id, '{1}', %s"
        " FROM segments s WHERE s.stream_id = %s AND s.first <= %s ORDER BY s.first DESC LIMIT 1",
        *(sequence, state, stream_id, sequence),
    )


def drop(world: World, stream_id: int) -> None:
    world.sql(
        "UPDATE segments SET tier = 'dropped' WHERE stream_id = %s AND last IS NOT NULL", stream_id
    )


async def clean_all(connection: Connection, *, pressed: bool = False) -> None:
    """Clean and shed until nothing is left to do, as the maintenance does."""
    fence = Fence()
    while await clean(connection, HOOKS, StorageBudget(0), fence) or await SHED(
        connection, pressed
    ):
        await delete_empty_partitions(connection)


class Due(NamedTuple):
    """A pending delivery."""

    group: int
    sequence: int
    payload: bytes | None


def due(world: World, stream_id: int) -> list[Due]:
    rows = world.sql(
        "SELECT partition_id, sequence, payload FROM deliveries WHERE stream_id = %s"
        " AND state = 'pending' ORDER BY sequence",
        stream_id,
    )
    return [Due(*row) for row in rows]


async def test_forwarders_retain_segments_that_they_have_not_passed(
    world: World, connection: Connection
) -> None:
    stream_id, other = world.stream(), world.stream()
    [appended] = world.emit(stream_id, "a")
    for stream, sequence in ((stream_id, 41), (other, 7)):
        world.sql("INSERT INTO forwarding (stream_id, segment, sequence) VALUES (%s, %s, %s)",
                  *(stream, appended.segment, sequence))  # fmt: skip
    world.sql(
        "INSERT INTO fanouts (partition_id, stream_id, segment_id, sequence, endpoints,"
        " registrations, ends, total) VALUES (1, %s, 1, 30, '{1}', '{1}', '{1}', 1)",
        stream_id,
    )
    try:
        needed = await log_retention.lowest_needed_sequences(connection)
        assert (needed[stream_id], needed[other]) == (30, 8)
    finally:
        world.sql("DELETE FROM fanouts")
        world.sql("DELETE FROM forwarding")


async def test_reliable_sessions_retain_what_they_have_not_acknowledged(
    world: World, connection: Connection
) -> None:
    """While they have a registration of the stream, and for some days without a connection."""
    stream_id, owner = world.stream(), (world.zone, world.client)
    [appended] = world.emit(stream_id, "a")
    [(team,)] = world.sql(
        "INSERT INTO session_groups (zone_id, client_id, name, quality)"
        " VALUES (%s, %s, 'team', 'best_effort') RETURNING id",
        *owner,
    )
    [(session,)] = world.sql(
        "INSERT INTO sessions (zone_id, client_id, name, kind)"
        " VALUES (%s, %s, 'reader', 'consumer') RETURNING id",
        *owner,
    )
    [(root,)] = world.sql(
        "INSERT INTO registration_groups (zone_id, client_id, name, session_id, root)"
        " VALUES (%s, %s, 'session/reader', %s, true) RETURNING id",
        *(*owner, session),
    )
    world.sql("INSERT INTO group_streams VALUES (%s, %s, 1)", root, stream_id)
    world.sql(
        "INSERT INTO session_cursors (session_id, stream_id, segment, sequence)"
        " VALUES (%s, %s, %s, 41)",
        *(session, stream_id, appended.segment),
    )

    async def needed() -> int | None:
        return (await log_retention.lowest_needed_sequences(connection)).get(stream_id)

    async def changed(change: str) -> int | None:
        """Return what is needed after a change, which is undone."""
        before = world.sql("SELECT saved_at FROM session_cursors WHERE session_id = %s", session)
        world.sql(change.replace("SESSION", str(session)).replace("TEAM", str(team)))
        found = await needed()
        world.sql("UPDATE sessions SET quality = 'reliable', group_id = NULL, deleted_at = NULL")
        world.sql("UPDATE group_streams SET registrations = 1 WHERE stream_id = %s", stream_id)
        world.sql("UPDATE session_cursors SET saved_at = %s", before[0][0])
        return found

    try:
        assert await needed() == 42
        assert await changed("UPDATE sessions SET quality = 'best_effort'") is None
        assert await changed("UPDATE sessions SET group_id = TEAM WHERE id = SESSION") is None
        assert await changed("UPDATE sessions SET deleted_at = now()") is None
        assert await changed("UPDATE group_streams SET registrations = 0") is None
        long_ago = "UPDATE session_cursors SET saved_at = now() - interval '8 days'"
        assert await changed(long_ago) is None
        world.sql("UPDATE sessions SET attached_at = now() WHERE id = %s", session)
        assert await changed(long_ago) == 42
        world.sql("UPDATE session_groups SET quality = 'reliable'")
        owned = "UPDATE registration_groups SET session_id = NULL, session_group_id = %s"
        world.sql(f"{owned} WHERE id = %s", team, root)
        assert await needed() is None
        world.sql("UPDATE sessions SET group_id = %s WHERE id = %s", team, session)
        assert await needed() == 42, "the registrations are its group's"
    finally:
        world.sql("DELETE FROM session_cursors")
        world.sql("DELETE FROM group_streams WHERE group_id = %s", root)


async def test_a_pending_delivery_gets_a_copy_before_its_event_is_removed(
    world: World, connection: Connection
) -> None:
    group = await new_group(world)
    stream_id = world.stream(segment_events_max=5)
    for appended in world.emit(stream_id, *["a"] * 5):
        state = "delivered" if appended.sequence == 2 else "pending"
        add_delivery(world, stream_id, appended.sequence, state)
    rows = world.sql(
        "SELECT sequence, payload FROM events WHERE partition_id = %s AND segment_id = (SELECT"
        " id FROM"
        " segments WHERE stream_id = %s AND first = 1)",
        *(group, stream_id),
    )
    await new_group(world)
    drop(world, stream_id)
    await clean_all(connection)
    assert [row[0] for row in world.sql(TABLES, group, group)] == [
        f"deliveries_p{group}"
    ]  # its history
    assert {one.sequence: one.payload for one in due(world, stream_id)} == (
        {at: payload for at, payload in rows if at != 2}
    )
    await clean_all(connection, pressed=True)  # space is short: what is pending moves on
    assert world.sql(TABLES, group, group) == []
    assert world.sql("SELECT count(*) FROM event_partitions WHERE id = %s", group) == [(0,)]
    assert [one.sequence for one in due(world, stream_id)] == [1, 3, 4, 5]
    assert {one.group for one in due(world, stream_id)} != {group}
    assert all(one.payload for one in due(world, stream_id))


async def test_an_event_removed_between_claim_and_post_is_posted(
    world: World, connection: Connection
) -> None:
    """Its delivery had received a copy of the event after the claim, and a gap was reported
    instead.
    """
    group = await new_group(world)
    stream_id = world.stream(segment_events_max=2)
    world.emit(stream_id, "before", "between")
    add_delivery(world, stream_id, 2)
    [together] = [one for one in await claim_groups(connection, {7: 100})
               if one.stream_id == stream_id]  # fmt: skip
    [claimed] = together.deliveries()
    await new_group(world)
    drop(world, stream_id)
    await clean_all(connection)
    assert [row[0] for row in world.sql(TABLES, group, group)] == [f"deliveries_p{group}"]
    endpoint = claims.CallbackEndpoint(7, "https://example.org/", 0, "v1", 1, "default", "native")
    loader = Loader(Keyring(("key",)), SystemClock())
    [single] = await loader.load(connection, [claimed], {7: endpoint}, MIB)
    [loaded] = await loader.load(connection, [together], {7: endpoint}, MIB)  # as for a batch
    for found in (*single.bodies, *loaded.bodies):
        assert found is not None
        posted = json.loads(found.content([1]).body)
        assert (posted["sequence"], posted["event"]["type"]) == (2, "between")


async def test_a_gap_notice_gets_no_copy(world: World, connection: Connection) -> None:
    """A gap notice has the key of an event, but does not describe the event."""
    group = await new_group(world)
    stream_id = world.stream(segment_events_max=5)
    world.emit(stream_id, *["a"] * 5)
    add_delivery(world, stream_id, 3)
    world.sql(
        "UPDATE deliveries SET gap_first = 1, gap_reason = 'backlog' WHERE stream_id = %s",
        stream_id,
    )
    later = await new_group(world)
    assert await retire_deliveries_partition(connection, group, None)
    assert due(world, stream_id) == [Due(later, 3, None)]
    drop(world, stream_id)
    await clean_all(connection)
    assert due(world, stream_id) == [Due(later, 3, None)]


async def test_the_event_of_a_delivery_is_found_after_its_segment_moved(
    world: World, connection: Connection
) -> None:
    group = await new_group(world)
    gone, kept = world.stream(segment_events_max=50), world.stream(segment_events_max=2)
    world.emit(gone, *["a"] * 100)
    world.emit(kept, "a", "a")
    add_delivery(world, kept, 1)
    later = await new_group(world)
    drop(world, gone)
    await clean_all(connection)
    assert world.sql(
        "SELECT partition_id FROM segments WHERE stream_id = %s AND first = 1", kept
    ) == ([(later,)])
    assert due(world, kept) == [Due(group, 1, None)]
    [together] = [one for one in await claim_groups(connection, {7: 100})
               if one.stream_id == kept]  # fmt: skip
    [claimed] = together.deliveries()
    [found] = await claimed_events.load_events(
        connection, [(claimed.segment_id, claimed.sequence)], MIB
    )
    [[payload]] = world.sql(
        "SELECT payload FROM events WHERE partition_id = %s AND segment_id = %s AND sequence = 1",
        *(later, claimed.segment_id),
    )
    assert (found.segment_id, found.sequence, found.payload) == (claimed.segment_id, 1, payload)


async def test_empty_partitions_of_deliveries_are_dropped_with_their_events(
    world: World, connection: Connection
) -> None:
    group = await new_group(world)
    stream_id = world.stream(segment_events_max=5)
    world.emit(stream_id, *["a"] * 5)
    await new_group(world)
    drop(world, stream_id)
    await clean_all(connection)
    assert world.sql(TABLES, group, group) == []
    assert await create_partitions(connection)
    assert world.sql(TABLES, group, group) == []  # and is not made again


async def test_deliveries_count_towards_the_size_of_their_partition(
    world: World, connection: Connection
) -> None:
    """Only its events counted: the deliveries of a few events to many endpoints took the whole
    quota in the current partition, which nothing cleans.
    """
    small = StorageBudget(0, quota=32 * 1024 * 1024)
    group = await new_group(world)
    stream_id = world.stream()
    world.emit(stream_id, "a")
    await prepare_partitions(connection, small)
    assert world.sql("SELECT current_partition FROM log_state") == [(group,)]
    world.sql(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " registrations) SELECT %s, n, 1, 1, %s, '{1}' FROM generate_series(1, 30000) AS n",
        *(group, stream_id),
    )
    await prepare_partitions(connection, small)
    assert world.sql("SELECT current_partition FROM log_state") == [(group + 1,)]
