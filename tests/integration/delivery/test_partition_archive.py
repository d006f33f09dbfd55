"""Retired partitions of deliveries and attempts: archived completely, or recorded as dropped;
nothing incomplete is ever visible.
"""

import asyncio
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest

from delivery import log_retention
from delivery.partitions.archive import PartitionArchive, archived_rows
from delivery.partitions.create import create_partitions
from delivery.partitions.retire import retire, retire_deliveries_partition, run_retirement
from eventhub.base import limits
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.errors import ArchiveDamaged
from eventhub.postgresql.connections import Connection, connect
from tests.forked import manage
from tests.integration.archive_world import crashing
from tests.integration.forward_world import World, world_database
from tests.integration.retention_world import next_group

database = pytest.fixture(scope="module")(world_database)
TIMEOUT_S = 60
DAY = "attempts_20200101"


@pytest.fixture
async def connection(database: World) -> AsyncIterator[Connection]:
    connection = await connect(database.url, name="test")
    yield connection
    await connection.close()


@pytest.fixture
def world(database: World) -> Iterator[World]:
    database.sql("TRUNCATE retired_partitions")
    yield database


async def old_group(world: World, connection: Connection, deliveries: int = 3) -> str:
    """Return the name of an expired partition with finished deliveries."""
    group = await next_group(world.url)
    assert await create_partitions(connection)
    stream_id = world.stream(segment_events_max=max(deliveries, 1))
    for appended in world.emit(stream_id, *["a"] * max(deliveries, 1))[:deliveries]:
        world.sql(
            "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
            " registrations, version_ids, state, attempts, finished_at, claim, payload)"
            " SELECT partition_id, 7, id, %s, stream_id, '{1,2}', '{11}', 'delivered', 1, now(),"
            "  gen_random_uuid(), 'bytes' FROM segments WHERE uuid = %s::uuid",
            *(appended.sequence, appended.segment),
        )
    await next_group(world.url)
    assert await create_partitions(connection)
    world.emit(stream_id, *["a"] * max(deliveries, 1))  # fills what was opened in the old group
    world.sql("UPDATE segments SET sealed_at = '2020-01-01' WHERE partition_id = %s", group)
    return f"deliveries_p{group}"


def old_day(world: World, attempts: int = 3) -> None:
    world.sql(f"CREATE TABLE {DAY} (LIKE attempts INCLUDING ALL)")
    world.sql(
        f"ALTER TABLE attempts ATTACH PARTITION {DAY} FOR VALUES FROM ('2020-01-01 00:00Z') TO"
        " ('2020-01-02 00:00Z')"
    )
    world.sql(
        "INSERT INTO attempts SELECT '2020-01-01 10:00Z'::timestamptz + make_interval(secs => n),"
        " 1, 7, 1, n, 1, 'status', 500, 12, 'http://a', 'request', 'response'"
        " FROM generate_series(1, %s) AS n",
        attempts,
    )


def there(world: World, name: str) -> bool:
    return bool(world.sql("SELECT to_regclass(%s) IS NOT NULL", name)[0][0])


def attached(world: World, name: str) -> bool:
    query = "SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass(%s) AND NOT inhdetachpending"
    return bool(world.sql(query, name))


def stored(world: World, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, as the archive represents them."""
    columns = world.sql(
        "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0",
        name,
    )[0][0]
    rows = [dict(zip(columns, row, strict=True)) for row in world.sql(f"TABLE {name}")]
    if "sequences" in columns:  # an attempt of a batch is one of each delivery
        rows = [row | {"sequence": n} for row in rows
                for n in row.pop("sequences") or [row["sequence"]]]  # fmt: skip
    return [{**row, "claim": str(row["claim"])} if "claim" in row else row for row in rows]


def archived(place: Path, manifest: str) -> list[dict[str, Any]]:
    batches = list(archived_rows(ArchiveFolder(str(place)), manifest))
    return pa.Table.from_batches(batches).to_pylist()


def recorded(world: World) -> dict[str, tuple[int, str | None, str]]:
    """Return rows, manifest and reason of each retired partition."""
    rows = world.sql("SELECT name, rows, archive_path, reason FROM retired_partitions")
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


async def test_partitions_are_archived_before_they_are_dropped(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    group = await old_group(world, connection)
    old_day(world)
    world.sql("DELETE FROM attempts WHERE sequence = 3")
    world.sql("UPDATE attempts SET sequences = '{2,3}' WHERE sequence = 2")
    held = {name: stored(world, name) for name in (group, DAY)}
    assert [row["sequence"] for row in held[DAY]] == [1, 2, 3]
    assert len(held[group]) == 3
    await run_retirement(world.url, str(tmp_path))
    left = recorded(world)
    for name, rows in held.items():
        assert not there(world, name)
        count, manifest, why = left[name]
        assert (count, why) == (3, "")
        assert manifest is not None
        assert manifest.startswith(f"_{name.partition('_')[0]}/{name}-")
        assert archived(tmp_path, manifest) == rows
    assert list((tmp_path / "_unfinished/partitions").iterdir()) == []


async def test_without_an_archive_they_are_dropped_and_recorded(
    world: World, connection: Connection
) -> None:
    group = await old_group(world, connection)
    empty = await old_group(world, connection, deliveries=0)
    await retire(connection, None)
    assert not there(world, group) and not there(world, empty)
    left = recorded(world)
    assert (left[group], left[empty]) == ((3, None, "no_archive"), (0, None, "empty"))


async def test_without_a_writable_archive_they_stay_unless_space_is_low(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    group = await old_group(world, connection)
    empty = await old_group(world, connection, deliveries=0)
    (tmp_path / "file").touch()
    away = PartitionArchive(str(tmp_path / "file/archive"), world.url)
    await retire(connection, away)
    assert attached(world, group) and not there(world, empty)  # an empty partition needs no archive
    assert group not in recorded(world)
    number = int(group.removeprefix("deliveries_p"))
    assert not await retire_deliveries_partition(connection, number, away)
    assert await retire_deliveries_partition(connection, number, away, low_space=True)
    assert not there(world, group)
    assert recorded(world)[group] == (3, None, "archive_unavailable")


async def test_a_shed_partition_is_archived_too(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    group = await old_group(world, connection)
    held = stored(world, group)
    number = group.removeprefix("deliveries_p")
    world.sql("UPDATE segments SET tier = 'dropped' WHERE partition_id = %s", int(number))
    world.sql(f"ALTER TABLE events DETACH PARTITION events_p{number}")
    world.sql(f"DROP TABLE events_p{number}")
    while there(world, group):  # the oldest goes first
        assert await log_retention.drop_oldest_partition(
            PartitionArchive(str(tmp_path), world.url), connection, True
        )
    _, manifest, _ = recorded(world)[group]
    assert manifest is not None
    assert archived(tmp_path, manifest) == held


class HangingPlace(ArchiveFolder):
    """A folder that accepts the first bytes of a file, and no more until released."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.released = threading.Event()

    @contextmanager
    def create(self, name: str) -> Iterator[tuple[str, IO[bytes]]]:
        with super().create(name) as (path, file):
            if name != "probe":
                self.released.wait(TIMEOUT_S)
            yield path, file


async def test_a_hanging_archive_is_abandoned_when_space_is_low(
    world: World, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PARTITION_ARCHIVE_PRESSED_S_MAX", 0.5)
    monkeypatch.setattr(limits, "PARTITION_ARCHIVE_PING_S", 0.1)
    group = await old_group(world, connection)
    archive = PartitionArchive(str(tmp_path), world.url)
    archive.folder = hanging = HangingPlace(str(tmp_path))
    try:
        number = int(group.removeprefix("deliveries_p"))
        assert await retire_deliveries_partition(connection, number, archive, low_space=True)
    finally:
        hanging.released.set()
    assert not there(world, group)
    assert recorded(world)[group] == (3, None, "archive_unavailable")


def test_killed_at_any_moment_nothing_is_lost_and_the_next_run_finishes(
    world: World, tmp_path: Path
) -> None:
    asyncio.run(run_retirement(world.url, ""))  # retires other expired partitions
    old_day(world)
    held = stored(world, DAY)
    with crashing("partition_archive_dying", world.url) as ask:
        _, _, *moments, status = ask(tmp_path / "list", "list")  # the first are of a probe
        assert status == "0"
        writes = [moment for moment in moments if moment.endswith("write")]
        moments = [moment for moment in moments if moment not in writes[1:-1]]
        assert len(moments) >= 8
        manifests = {recorded(world)[DAY][1]}
        for moment in moments:
            world.sql("TRUNCATE retired_partitions")
            old_day(world)
            place = tmp_path / moment
            assert ask(place, moment) == [str(-signal.SIGKILL)], moment
            assert recorded(world) == {}, moment
            assert stored(world, DAY) == held, moment
            asyncio.run(run_retirement(world.url, str(place)))
            assert not there(world, DAY), moment
            count, manifest, _ = recorded(world)[DAY]
            assert count == 3 and manifest, moment
            assert archived(place, manifest) == held, moment
            found = sorted(path.name for path in (place / "_attempts").iterdir())
            assert len(found) == 2, moment  # a repeat writes the same names
            manifests.add(manifest)
    assert len(manifests) == 1


def archive(world: World, place: Path, action: str) -> str:
    """Return the output of `manage.py archive ACTION`."""
    env = {**os.environ, "DATABASE_URL": world.url, "EVENTHUB_ARCHIVE_URL": str(place)}
    env.pop("DATABASE_DIRECT_URL", None)
    done = manage(env, "archive", action)
    return done.stdout + done.stderr


async def test_the_command_lists_archived_damaged_and_lost_partitions(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    group = await old_group(world, connection)
    await retire(connection, PartitionArchive(str(tmp_path), world.url))
    _, manifest, _ = recorded(world)[group]
    assert manifest is not None
    lost = await old_group(world, connection, deliveries=2)
    await retire(connection, None)
    output = archive(world, tmp_path, "status")
    assert "deliveries 1 partitions archived, 3 rows; 1 dropped without archive, 2 rows" in output
    assert re.search(f"lost +{lost} at .*, 2 rows: no_archive", output)
    assert f"{manifest} good" in archive(world, tmp_path, "verify")
    file = (tmp_path / manifest).with_suffix(".parquet")
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"?" + content[101:])
    assert f"{manifest} damaged: " in archive(world, tmp_path, "verify")
    with pytest.raises(ArchiveDamaged):
        archived(tmp_path, manifest)
    file.unlink()
    with pytest.raises(ArchiveDamaged):
        archived(tmp_path, manifest)
