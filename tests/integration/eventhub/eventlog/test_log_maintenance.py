"""The maintenance of a running log: its data stays below the quota while streams are busy, and
readers learn exactly what was dropped.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import EventHubError, Gone
from eventhub.base.event_loop import run_forever
from eventhub.eventlog.errors import StorageFull
from eventhub.eventlog.log import Log
from eventhub.eventlog.maintenance import Maintenance
from eventhub.eventlog.retention.disk import Disk
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.eventlog.retention.storage import read_storage
from eventhub.eventlog.stored import Cursor
from tests.chaos.disk import MountRefused, fill, mounted
from tests.integration.eventlog_world import draft, execute, log_database, new_stream
from tests.integration.retention_world import announced, ask, partitions

url = pytest.fixture(log_database)
MIB = 1024 * 1024
QUOTA = 32 * MIB
MEASURE_S = 0.02
FILL_STATE = (
    "INSERT INTO keyed_state SELECT %s, sha256(n::text::bytea), n::text, gen_random_uuid(), n, 1,"
    " now(), decode(repeat('ab', 1000), 'hex') FROM generate_series(1, 13500) AS n"
)
GONE = "SELECT count(*) FROM segments WHERE tier = 'dropped'"


class RunningLog(NamedTuple):
    log: Log
    maintenance: Maintenance


@asynccontextmanager
async def running(
    url: str, quota_bytes: int | None, disk: Disk | None = None
) -> AsyncIterator[RunningLog]:
    async with Log.open(database_url=url) as log:
        maintenance = Maintenance(
            url, RetentionHooks(), SystemClock(), quota_bytes=quota_bytes, disk=disk
        )
        log.admit = maintenance.admit
        task = asyncio.create_task(run_forever("maintenance", maintenance.run))
        try:
            yield RunningLog(log, maintenance)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(_until, holds)


def _until(holds: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def used(url: str) -> int:
    with psycopg.connect(url) as connection:
        return read_storage(connection, zone_id=None, quota_bytes=None).used_bytes


def newest(url: str, stream: int) -> int:
    """Return the approximate bytes on the disk of a stream's live segments."""
    [[live]] = ask(url, "SELECT sum(COALESCE(g.bytes, h.bytes)) FROM segments g LEFT JOIN heads h"
                        " ON h.segment_id = g.id AND g.last IS NULL"
                        " WHERE g.tier = 'live' AND g.stream_id = %s", stream)  # fmt: skip
    return int(live)


async def emit(log: Log, stream: int, count: int) -> int:
    """Emit batches of large events, and repeat those refused for lack of space. Return how many."""
    number = 0
    while number < count:
        drafts = [draft(stream, number + at, size=2_000) for at in range(1, 101)]
        try:
            await log.append(drafts)
            number += 100
        except StorageFull as full:
            assert full.retry_after_s
            await asyncio.sleep(0.05)
    return number


class CountingReader:
    """Reads a stream from its beginning, and counts the events and the reported gaps."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.seen = 0
        self.missed = 0
        self.after: Cursor | None = None

    async def read(self, log: Log, last: int) -> None:
        while self.seen + self.missed < last:
            try:
                await self._follow(log, last)
            except Gone as gone:
                first, until_ = gone.details["missed"]["first"], gone.details["missed"]["last"]
                assert first == self.seen + self.missed + 1
                self.missed += until_ - first + 1
                self.after = Cursor(**gone.details["resume"])

    async def _follow(self, log: Log, last: int) -> None:
        start = self.after or "oldest"
        async with log.follow(self.stream, start) as follower:
            if self.after is None:
                self.missed += follower.cursor.sequence
            async for stored in follower:
                assert stored.sequence == self.seen + self.missed + 1
                self.seen += 1
                self.after = stored.cursor
                if stored.sequence >= last:
                    return


@pytest.mark.timeout(180)
async def test_three_busy_streams_stay_below_the_quota_and_every_gap_is_reported(url: str) -> None:
    """None of their segments would ever be sealed by its own policy; they write twice the quota."""
    streams = [new_stream(url) for _ in range(3)]
    count = 10_800
    highest = 0
    done = asyncio.Event()

    async def measure() -> None:
        nonlocal highest
        while not done.is_set():
            highest = max(highest, await asyncio.to_thread(used, url))
            await asyncio.sleep(MEASURE_S)

    async with running(url, QUOTA) as world:
        measuring = asyncio.create_task(measure())
        readers = [CountingReader(stream) for stream in streams]
        reading = [asyncio.create_task(reader.read(world.log, count)) for reader in readers]
        await asyncio.gather(*(emit(world.log, stream, count) for stream in streams))
        await asyncio.gather(*reading)
        done.set()
        await measuring
        await until(lambda: not world.maintenance.budget.must_free_space)
    assert highest <= QUOTA
    for reader in readers:
        assert reader.seen + reader.missed == count
    dropped = ask(url, "SELECT sum(last - first + 1) FROM segments WHERE tier = 'dropped'"
                       " AND stream_id <> 1")  # fmt: skip
    trimmed = announced(url, "stream.trimmed")
    assert sum(each["events"] for each in trimmed) == dropped[0][0] > count
    [warning] = announced(url, "storage.quota_reached")
    assert (warning["level"], warning["quota_bytes"]) == ("warning", QUOTA)


async def test_if_all_segments_are_held_emits_are_refused_until_the_hold_ends(url: str) -> None:
    held = new_stream(url, segment_events_max=200)
    execute(url, "UPDATE streams SET hold = 'case 7' WHERE id = %s", held)
    async with running(url, 32 * MIB) as world:
        with pytest.raises(StorageFull) as caught:
            for number in range(400):
                await world.log.append([draft(held, number, size=2_000)] * 100)
        assert (caught.value.code, caught.value.status) == ("storage_full", 507)
        assert ask(url, "SELECT count(*) FROM segments WHERE tier = 'dropped'") == [(0,)]
        execute(url, "UPDATE streams SET hold = NULL WHERE id = %s", held)
        await until(lambda: world.maintenance.refusal() is None)
        await world.log.append([draft(held, 1)])
    assert ask(url, "SELECT count(*) > 0 FROM segments WHERE tier = 'dropped'") == [(True,)]


async def rounds(maintenance: Maintenance, count: int) -> None:
    """Wait for so many measurements."""
    seen = [maintenance.budget]

    def measured() -> bool:
        if maintenance.budget is not seen[-1]:
            seen.append(maintenance.budget)
        return len(seen) > count

    await until(measured)


async def test_data_other_than_events_does_not_drop_all_events(url: str) -> None:
    """Keyed state uses the whole quota: the newest events stay, and emitters get the reason."""
    stream = new_stream(url, segment_events_max=200)
    async with running(url, 32 * MIB) as world:
        await emit(world.log, stream, 4_000)
        execute(url, FILL_STATE, new_stream(url, keyed=True))
        await until(lambda: world.maintenance.budget.cannot_free_space)
        await until(lambda: bool(announced(url, "storage.quota_reached")))
        await rounds(world.maintenance, 10)  # more than it takes to drop all of it
        with pytest.raises(StorageFull, match="Dropping events does not help"):
            await world.log.append([draft(stream, 1)])
        kept = "SELECT sum(bytes) FROM segments WHERE tier = 'live' AND stream_id = %s"
        assert ask(url, kept, stream)[0][0] > 32 * MIB * limits.DISK_FLOOR_SHARE / 2
        warning = announced(url, "storage.quota_reached")[-1]
        assert warning["usage"]["keyed_state"] > 25 * MIB
        execute(url, "TRUNCATE keyed_state")
        await until(lambda: world.maintenance.refusal() is None)
        await world.log.append([draft(stream, 1)])


async def test_without_a_quota_nothing_is_refused_and_policies_apply(url: str) -> None:
    stream = new_stream(url, segment_events_max=100, retain_events=1_000)
    async with running(url, None) as world:
        await emit(world.log, stream, 2_000)
        oldest = "SELECT min(first) FROM segments WHERE stream_id = %s AND tier <> 'dropped'"
        await until(lambda: ask(url, oldest, stream) == [(1_001,)])
        refusal: EventHubError | None = world.maintenance.refusal()
        assert refusal is None


@pytest.mark.timeout(180)
async def test_a_low_disk_drops_the_oldest_and_a_full_disk_refuses_emits(
    url: str, tmp_path: Path
) -> None:
    """A disk of 300 MiB that is mostly filled by something else. The newest eighth stays."""
    stream = new_stream(url, segment_events_max=200)
    eighth = 300 * MIB * limits.DISK_FLOOR_SHARE
    folder, filler = tmp_path / "disk", tmp_path / "disk" / "filler"
    try:
        with mounted(folder, 300):
            async with running(url, None, Disk(folder)) as world:
                await emit(world.log, stream, 20_000)
                assert ask(url, GONE) == [(0,)]
                await asyncio.to_thread(fill, filler)
                await until(lambda: world.maintenance.refusal() is not None)
                with pytest.raises(StorageFull):
                    await world.log.append([draft(stream, 1)])
                os.truncate(filler, 240 * MIB)  # low, and no longer full
                await until(lambda: world.maintenance.refusal() is None)
                await world.log.append([draft(stream, 1)])
                await until(lambda: bool(ask(url, GONE)[0][0]))
                await rounds(world.maintenance, 5)  # there is no room to clean its partition
                assert newest(url, stream) > eighth * 0.65  # 0.7 is stored, the rest are indexes
                os.truncate(filler, 212 * MIB)  # low, and there is
                await until(lambda: "events_p1" not in partitions(url))
                await rounds(world.maintenance, 5)
                assert used(url) > eighth * 0.95
                await until(lambda: bool(announced(url, "storage.disk_full")))
    except MountRefused as refused:
        pytest.skip(f"this machine lets us mount nothing: {refused}")
    assert ask(url, "SELECT DISTINCT removal_reason FROM segments WHERE tier = 'dropped'") == [
        ("disk",)
    ]
    assert [one["level"] for one in announced(url, "storage.disk_full")] == ["warning"]


async def test_partitions_dropped_since_the_last_measurement_are_not_counted_twice(
    url: str,
) -> None:
    """A partition was dropped between measurement and decision, so events were dropped below their
    minimum.
    """
    stream = new_stream(url, segment_events_max=100)
    async with running(url, None) as world:
        await emit(world.log, stream, 2_000)
    maintenance = Maintenance(url, RetentionHooks(), SystemClock(), quota_bytes=QUOTA, disk=None)
    maintenance.budget = StorageBudget(QUOTA, QUOTA)  # measured before
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await maintenance._free_space(connection, SystemClock().now_us())
    assert ask(url, GONE) == [(0,)]


async def test_unmeasured_bytes_are_bounded_even_if_the_measurement_is_late(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a measurement, a fifth of the free space is used, and the next emit is refused."""
    monkeypatch.setattr(limits, "QUOTA_MEASURE_S_MAX", 0.05)
    maintenance = Maintenance(url, RetentionHooks(), SystemClock(), quota_bytes=QUOTA, disk=None)
    maintenance.budget = StorageBudget(QUOTA // 2, QUOTA)
    batch = [draft(1, 1, size=2_000)] * 100
    taken = 0
    with pytest.raises(StorageFull):
        while taken < QUOTA:
            await maintenance.admit(batch)
            taken += sum(len(one.payload) for one in batch)
    assert 0 < taken <= QUOTA // 2 * limits.QUOTA_SHARE_UNMEASURED
