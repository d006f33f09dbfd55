"""The backlog of endpoints that accept nothing: the oldest deliveries are dropped, and gap notices
report them.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from delivery.forward.backlog import SQL, enforce_bounds, with_quotas
from delivery.forward.bounds import BacklogSettings, bounds_of
from delivery.forward.losses import announce_losses
from delivery.partitions.create import create_partitions
from eventhub.base import limits
from eventhub.postgresql.connections import Connection, connect
from tests.integration.forward_world import World, world_database
from tests.integration.retention_world import announced

database = pytest.fixture(scope="module")(world_database)
ANY = BacklogSettings()
OWED = (
    "SELECT sequence, state, gap_first FROM deliveries WHERE endpoint_id = %s"
    " AND (state <> 'dropped') ORDER BY stream_id, sequence"
)


@pytest.fixture
def world(database: World) -> Iterator[World]:
    database.sql("DELETE FROM deliveries")
    database.sql("DELETE FROM endpoint_losses")
    yield database


@pytest.fixture
async def connection(world: World) -> AsyncIterator[Connection]:
    connection = await connect(world.url, name="test")
    while not await create_partitions(connection):
        pass
    await connection.execute(SQL["settings"])
    yield connection
    await connection.close()


def add_deliveries(
    world: World, stream_id: int, endpoint: int, first: int, last: int, **more: Any
) -> None:
    """Insert deliveries of a stream's sequences, the older ones first; `more`: columns."""
    columns = {"created_at": None, **more}
    names = "".join(f", {name}" for name in columns if name != "created_at")
    values = "".join(", %s" for name in columns if name != "created_at")
    world.sql(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " zone_id,"
        f" ordered, registrations, created_at{names}) SELECT s.partition_id, e.id, s.id, n,"
        f" s.stream_id, e.zone_id, e.ordered, '{{7}}', now() - (1000 - n) * interval '1 ms'{values}"
        " FROM segments s, endpoints e, generate_series(%s::bigint, %s::bigint) AS n"
        " WHERE s.stream_id = %s AND s.first = 1 AND e.id = %s",
        *(value for name, value in columns.items() if name != "created_at"),
        *(first, last, stream_id, endpoint),
    )


def narrow(events: int) -> Any:
    return bounds_of(ANY._replace(events=events), None)


@pytest.mark.parametrize("ordered", [False, True])
async def test_the_oldest_deliveries_become_one_gap_notice_of_their_lane(
    world: World, connection: Connection, ordered: bool
) -> None:
    """Deliveries being posted stay; later drops extend the same notice."""
    stream_id, second_stream = world.stream(), world.stream()
    [full, other] = world.endpoints(2, ordered=ordered)
    add_deliveries(world, stream_id, full, 1, 30)
    add_deliveries(world, stream_id, full, 31, 31, claim="9c5b94b1-35ad-49bb-b118-8e8fc24abf80",
        next_attempt_at="infinity")  # fmt: skip
    add_deliveries(world, second_stream, full, 100, 101)
    add_deliveries(world, stream_id, other, 1, 20)
    assert await enforce_bounds(connection, narrow(20)) == 15  # 18 of 33 remain
    kept = [(at, "pending", None) for at in range(16, 32)]
    later = [(100, "pending", None), (101, "pending", None)]
    assert world.sql(OWED, full) == [(15, "pending", 1), *kept, *later]
    assert len(world.sql(OWED, other)) == 20
    assert await enforce_bounds(connection, narrow(20)) == 0  # a notice does not count
    add_deliveries(world, stream_id, full, 32, 36)
    assert await enforce_bounds(connection, narrow(20)) == 5
    [first, *rest] = world.sql(OWED, full)
    assert first == (20, "pending", 1)
    assert len(rest) == 18
    announcement = world.sql("SELECT registrations, gap_reason, payload, claim FROM deliveries"
                     " WHERE endpoint_id = %s AND gap_first = 1", full)  # fmt: skip
    assert announcement == [([7], "backlog", None, None)]
    # the rest keep their states, also the first notice
    states = "SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND state = 'dropped'"
    assert world.sql(states, full) == [(19,)]


async def test_notices_of_a_lane_stay_in_order(world: World, connection: Connection) -> None:
    """A notice of a forwarder's gap is in the middle of the dropped deliveries."""
    stream_id = world.stream()
    [endpoint] = world.endpoints(ordered=True)
    add_deliveries(world, stream_id, endpoint, 1, 4)
    add_deliveries(world, stream_id, endpoint, 8, 8, gap_first=5, gap_reason="quota")
    add_deliveries(world, stream_id, endpoint, 9, 20)
    assert await enforce_bounds(connection, narrow(10)) == 7
    add_deliveries(world, stream_id, endpoint, 21, 23)
    assert await enforce_bounds(connection, narrow(10)) == 3
    notices = [(4, "pending", 1), (8, "pending", 5), (14, "pending", 9)]
    assert world.sql(OWED, endpoint)[:3] == notices


async def test_bytes_include_those_of_the_events(world: World, connection: Connection) -> None:
    """Including the bytes that a delivery would receive only when its event's partition
    is dropped.
    """
    stream_id = world.stream()
    world.emit(stream_id, *["a"] * 10, body=b"x" * 10_000)
    [light, heavy] = world.endpoints(2)
    add_deliveries(world, stream_id, light, 1, 2)
    add_deliveries(world, stream_id, heavy, 1, 10)
    add_deliveries(world, stream_id, heavy, 11, 20, payload=b"x" * 20_000)
    settings = bounds_of(ANY._replace(bytes=200_000), None)
    await enforce_bounds(connection, settings)
    assert len(world.sql(OWED, light)) == 2
    # 180,000 of 310,000 bytes remain, as a notice and the newest
    assert [row[0] for row in world.sql(OWED, heavy)] == list(range(12, 21))


async def test_overdue_deliveries_are_dropped(world: World, connection: Connection) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    add_deliveries(world, stream_id, endpoint, 1, 5)
    world.sql("UPDATE deliveries SET created_at = now() - interval '3 days' WHERE sequence < 4")
    settings = bounds_of(ANY._replace(age_s=2 * 24 * 3600), None)
    assert await enforce_bounds(connection, settings) == 3
    assert world.sql(OWED, endpoint) == [
        (3, "pending", 1), (4, "pending", None), (5, "pending", None),
    ]  # fmt: skip
    world.sql("UPDATE deliveries SET created_at = now() - interval '9 days' WHERE sequence = 3")
    assert await enforce_bounds(connection, settings) == 0  # a notice is never dropped


async def test_losses_are_announced_at_once_and_then_together(
    world: World, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    add_deliveries(world, stream_id, endpoint, 1, 20)
    before = len(announced(world.url, "delivery.dropped"))
    assert await enforce_bounds(connection, narrow(10)) == 11
    assert await announce_losses(connection) == 1
    add_deliveries(world, stream_id, endpoint, 21, 40)
    assert await enforce_bounds(connection, narrow(10)) == 20
    assert await announce_losses(connection) == 0
    monkeypatch.setattr(limits, "LOSSES_INTERVAL_S", 0.0)
    assert await announce_losses(connection) == 1
    assert await announce_losses(connection) == 0
    first, second = announced(world.url, "delivery.dropped")[before:]
    assert (first["deliveries"], first["first"]["sequence"], first["last"]["sequence"]) == (
        11, 1, 11,
    )  # fmt: skip
    assert (second["deliveries"], second["first"]["sequence"], second["last"]["sequence"]) == (
        20, 12, 31,
    )  # fmt: skip
    assert first.items() >= {
        "level": "warning", "zone": "forward", "client": "c", "endpoint": endpoint,
        "bound": "endpoint",
    }.items()  # fmt: skip
    assert world.sql("SELECT count(*) FROM endpoint_losses") == [(0,)]


COUNTS = (
    "SELECT c.events, c.bytes > 0 FROM backlog_counts c JOIN endpoints e USING (client_id, zone_id)"
    " WHERE e.id = %s"
)


@pytest.mark.parametrize("of", ["client", "zone"])
async def test_the_quotas_of_a_client_and_of_a_zone_bound_the_backlog(
    world: World, connection: Connection, of: str
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    add_deliveries(world, stream_id, endpoint, 1, 30)
    owner = "client_id" if of == "client" else "NULL"
    world.sql(
        "INSERT INTO quotas (zone_id, client_id, kind, value)"
        f" SELECT zone_id, {owner}, 'backlog_events', 20 FROM endpoints WHERE id = %s",
        endpoint,
    )
    try:
        bounds = await with_quotas(connection, bounds_of(ANY, None))
        assert await enforce_bounds(connection, bounds) == 12
        assert world.sql(COUNTS, endpoint) == [(30, True)]  # as counted before
        [(reason,)] = world.sql(
            "SELECT reason FROM endpoint_losses WHERE endpoint_id = %s", endpoint
        )
        assert reason == of
        assert await enforce_bounds(connection, bounds) == 0
        assert world.sql(COUNTS, endpoint) == [(18, True)]
        world.sql("DELETE FROM deliveries")
        assert await enforce_bounds(connection, bounds) == 0
        assert world.sql("SELECT count(*) FROM backlog_counts") == [(0,)]
    finally:
        world.sql("DELETE FROM quotas")
