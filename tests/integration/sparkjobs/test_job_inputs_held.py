"""Partitions during an export: those it has yet to read are held, all others can be dropped."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from delivery.partitions.retire import retire_deliveries_partition
from eventhub.eventlog.retention.cleaning import Fence, clean, horizon, is_exported
from eventhub.eventlog.retention.drop import drop_by_policy
from eventhub.postgresql.connections import Connection
from tests.integration.archive_world import archive, archived_stream, fill
from tests.integration.forward_world import World, world_database
from tests.integration.retention_world import (
    ENOUGH,
    NO_HOOKS,
    NOW_US,
    connected,
    next_group,
    partitions,
)
from tests.integration.sparkjobs.test_job_inputs import Inputs

database = pytest.fixture(world_database)


@contextmanager
def held_up(
    world: World, tmp_path: Path, table: str, place: Path | str = "", **scope: Any
) -> Iterator[Future[Inputs]]:
    """Run an export that is blocked at a table until the block ends."""
    with psycopg.connect(world.url) as blocker, ThreadPoolExecutor(1) as pool:
        blocker.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        try:
            reading = pool.submit(Inputs, world.url, tmp_path / "in", place, **scope)
            waits = (
                "SELECT count(*) FROM pg_locks"
                f" WHERE NOT granted AND relation = '{table}'::regclass"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            while not world.sql(waits)[0][0]:
                assert not reading.done()
            yield reading
        finally:
            blocker.rollback()


async def ready_to_clean(connection: Connection) -> Fence:
    """Return a fence that has passed the current horizon."""
    fence = Fence()
    fence.passed(await horizon(connection))
    return fence


async def test_a_partition_is_held_until_it_was_read(database: World, tmp_path: Path) -> None:
    url = database.url
    stream = database.stream(segment_events_max=3)
    database.emit(stream, *"abc")
    await next_group(url)
    database.sql("CREATE TABLE deliveries_p1 PARTITION OF deliveries FOR VALUES IN (1)")
    database.sql("CREATE TABLE deliveries_p2 PARTITION OF deliveries FOR VALUES IN (2)")
    async with connected(url) as connection:
        with held_up(database, tmp_path, "heads") as reading:  # says where segments end
            database.sql("SET lock_timeout = '200ms'")
            for table in ("events_p1", "deliveries_p1"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    database.sql(f"DROP TABLE {table}")
            assert await is_exported(connection, "events_p1")
            assert not await retire_deliveries_partition(connection, 1, None)
        inputs = reading.result()
        [segment, _] = inputs.segments(stream)
        assert len(inputs.events(segment)) == 3
        assert not await is_exported(connection, "events_p1")
        assert await retire_deliveries_partition(connection, 1, None)


async def test_archived_segments_are_not_held(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    stream = archived_stream(url, "orders", zone_id=database.zone, events_max=5)
    fill(url, stream, 4)
    await next_group(url)
    fill(url, stream, 2, begin=5)  # what is opened now is in the new group
    archive(url, place)
    scope = {"zone_id": database.zone}
    async with connected(url) as connection:
        with held_up(database, tmp_path, "heads", place, **scope):
            assert not await is_exported(connection, "events_p1")
            assert await is_exported(connection, "events_p2")
        with held_up(database, tmp_path / "without", "heads", **scope):
            assert await is_exported(connection, "events_p1")


async def test_exported_and_archived_events_can_be_dropped(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    kept = archived_stream(url, "orders", zone_id=database.zone, events_max=5)
    payloads = fill(url, kept, 10)
    other = database.stream(segment_events_max=3)
    database.emit(other, *"abc")
    archive(url, place)
    await next_group(url)
    async with connected(url) as connection:
        fence = await ready_to_clean(connection)
        with held_up(database, tmp_path, "clients", place) as reading:  # after all events
            database.sql("UPDATE streams SET retain_age_s = 1 WHERE id = ANY (%s)", [kept, other])
            assert len(await drop_by_policy(connection, NO_HOOKS, NOW_US)) == 2
            database.sql("SET lock_timeout = '2s'")
            assert await clean(connection, NO_HOOKS, ENOUGH, fence)
            assert partitions(url) == ["events_p2"]
            assert not reading.done()
    inputs = reading.result()
    found = inputs.segments(kept)
    assert [(row["tier"], row["source"]) for row in found[:2]] == [("live", "archive")] * 2
    read = [event for row in found[:2] for event in inputs.events(row)]
    assert read == list(enumerate(payloads, 1))
    assert len(inputs.events(inputs.segments(other)[0])) == 3
    assert inputs.rows("live") == [], "the database's rows are unknown"


async def test_a_partition_dropped_before_it_was_held_is_read_from_a_new_snapshot(
    database: World, tmp_path: Path
) -> None:
    url = database.url
    stream = database.stream(segment_events_max=3)
    database.emit(stream, *"abc", body=b"x" * 5_000, content_type="x/y")
    await next_group(url)
    database.emit(stream, *"de")
    database.sql("CREATE TABLE attempts_20200101 PARTITION OF attempts"
                 " FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')")  # fmt: skip
    async with connected(url) as connection:
        fence = await ready_to_clean(connection)
        # held before events are
        with held_up(database, tmp_path, "attempts_20200101") as reading:
            database.sql("UPDATE streams SET retain_age_s = 1 WHERE id = %s", stream)
            assert await drop_by_policy(connection, NO_HOOKS, NOW_US)
            assert await clean(connection, NO_HOOKS, ENOUGH, fence)
            assert partitions(url) == ["events_p2"]
    found = reading.result().segments(stream)
    assert [(row["tier"], row["source"]) for row in found[:2]] == [
        *(("dropped", "none"), ("live", "export"))
    ]
    assert len(reading.result().events(found[1])) == 2
