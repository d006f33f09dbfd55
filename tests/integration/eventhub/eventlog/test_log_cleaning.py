"""Cleaning: live segments are copied and the partition is dropped, unnoticed by readers and
writers.
"""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from eventhub.eventlog.retention.cleaning import Fence, clean, read_partitions
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.postgresql.connections import Connection
from tests.integration.eventlog_world import append_now, draft, execute, log_database, new_stream
from tests.integration.forward_world import eventually
from tests.integration.retention_world import (
    NO_HOOKS,
    ask,
    clean_all,
    connected,
    fill,
    next_group,
    numbers,
    oldest,
    partitions,
    read_all,
)

url = pytest.fixture(log_database)


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connected(url) as opened:
        yield opened


def drop_where(url: str, condition: str) -> None:
    execute(url, f"UPDATE segments SET tier = 'dropped' WHERE last IS NOT NULL AND {condition}")


async def mostly_dropped(url: str) -> tuple[int, int]:
    """Return a stream without drops and a mostly dropped one, with events in partition 1; the
    second one's segment is open, and partition 2 is current.
    """
    kept = new_stream(url, segment_events_max=50)
    gone = new_stream(url, segment_events_max=50)
    fill(url, gone, 1, 500, size=500)
    fill(url, kept, 1, 120, size=500)
    await next_group(url)
    drop_where(url, f"stream_id = {gone}")
    return kept, gone


async def test_live_segments_are_copied_and_the_partition_is_dropped(
    url: str, connection: Connection
) -> None:
    kept, _ = await mostly_dropped(url)
    before = await read_all(connection, kept, oldest(url, kept))
    assert await clean_all(connection) == 1
    assert partitions(url) == ["events_p2"]
    after = await read_all(connection, kept, oldest(url, kept))
    assert [(one.cursor, one.payload, one.appended_at_us, one.mask) for one in after] == (
        [(one.cursor, one.payload, one.appended_at_us, one.mask) for one in before]
    )
    assert numbers(after) == list(range(1, 121))
    assert ask(url, "SELECT DISTINCT partition_id FROM heads") == [(2,)]
    fill(url, kept, 121, 130)
    assert numbers(await read_all(connection, kept, oldest(url, kept)))[-1] == 130


async def test_a_partition_accepts_late_writes_until_it_is_dropped(
    url: str, connection: Connection
) -> None:
    """Moved segments did not count, so each byte in their partition seemed to use more of the disk,
    and too much was dropped while it was cleaned.
    """
    await mostly_dropped(url)
    before, _ = await read_partitions(connection)
    assert 0 < before.live < before.stored < before.size

    async def keep(_connection: Connection, _group: int) -> bool:
        return False

    assert await clean_all(connection, NO_HOOKS._replace(release=keep)) == 0
    after, _ = await read_partitions(connection)
    assert after == before._replace(live=0, nonempty=0)


async def test_a_mostly_live_partition_is_not_cleaned(url: str, connection: Connection) -> None:
    stream = new_stream(url, segment_events_max=50)
    fill(url, stream, 1, 500, size=500)
    await next_group(url)
    drop_where(url, f"stream_id = {stream} AND first <= 150")
    assert await clean_all(connection) == 0
    pressed = StorageBudget(used=850 << 20, quota=1000 << 20)
    assert pressed.must_free_space
    assert await clean_all(connection, budget=pressed) == 1


async def test_an_empty_open_segment_keeps_its_uuid(url: str, connection: Connection) -> None:
    stream = new_stream(url)
    [[before]] = ask(url, "SELECT segment FROM heads WHERE stream_id = %s", stream)
    await next_group(url)
    assert await clean_all(connection) == 1
    after = ask(url, "SELECT h.segment, h.partition_id, s.partition_id FROM heads h JOIN segments s"
                     " ON s.id = h.segment_id WHERE h.stream_id = %s", stream)  # fmt: skip
    assert after == [(before, 2, 2)]


async def test_interrupted_cleaning_is_completed(url: str, connection: Connection) -> None:
    """Half a copy, then an interrupted detachment, then a table that was not dropped."""
    kept, _ = await mostly_dropped(url)
    [[segment]] = ask(url, "SELECT id FROM segments WHERE stream_id = %s AND first = 1", kept)
    execute(url, "INSERT INTO events SELECT segment_id, sequence, mask, appended_at, 2, payload"
                 " FROM events WHERE segment_id = %s AND sequence <= 20", segment)  # fmt: skip
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM events")  # its snapshot holds the detachment up
        await connection.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await clean_all(connection)
    pending = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = 'events_p1'::regclass"
    assert ask(url, pending) == [(True,)]
    assert numbers(await read_all(connection, kept, oldest(url, kept))) == list(range(1, 121))
    assert await clean_all(connection) == 1
    assert partitions(url) == ["events_p2"]
    execute(url, "CREATE TABLE events_p1 (LIKE events INCLUDING ALL)")
    assert await clean_all(connection) == 1
    assert partitions(url) == ["events_p2"]
    assert numbers(await read_all(connection, kept, oldest(url, kept))) == list(range(1, 121))


async def test_cleaning_waits_for_appends_started_before_the_partition_changed(
    url: str, connection: Connection
) -> None:
    """Such an append may still open a segment in the old partition."""
    stream = new_stream(url)
    fence = Fence()
    with psycopg.connect(url) as slow:
        slow.execute("SELECT FROM heads WHERE stream_id = %s FOR NO KEY UPDATE", (stream,))
        await next_group(url)
        assert not await clean(connection, RetentionHooks(), StorageBudget(0), fence)
        slow.execute("INSERT INTO segments (uuid, stream_id, partition_id, first)"
                     " VALUES (gen_random_uuid(), %s, 1, 1)", (stream,))  # fmt: skip
        slow.rollback()
    assert await clean(connection, RetentionHooks(), StorageBudget(0), fence)


async def test_readers_and_appends_go_on_while_partitions_are_cleaned(
    url: str, connection: Connection
) -> None:
    """One stream is appended to and read repeatedly from its beginning; another is dropped as it
    grows, so that each partition is cleaned with half of it live.
    """
    kept, gone = (new_stream(url, segment_events_max=40) for _ in range(2))
    fill(url, kept, 1, 1)
    done = asyncio.Event()
    groups = 0

    async def emit() -> int:
        number = 1
        while not done.is_set():
            both = [draft(kept, number + 1, size=300), *(draft(gone, 0, size=900),) * 2]
            await asyncio.to_thread(append_now, url, *both)
            number += 1
        return number

    async def look() -> int:
        looks = 0
        async with connected(url) as own:
            while not done.is_set():
                found = numbers(await read_all(own, kept, oldest(url, kept)))
                assert found == list(range(1, len(found) + 1))
                looks += 1
        return looks

    emitting = asyncio.create_task(emit())
    looking = [asyncio.create_task(look()) for _ in range(2)]
    try:
        while groups < 3:
            await asyncio.to_thread(_await_events, url, kept)
            await next_group(url)
            await asyncio.to_thread(drop_where, url, f"stream_id = {gone}")
            groups += await clean_all(connection)
            failed = [task for task in (emitting, *looking) if task.done()]
            assert not failed, [task.exception() for task in failed]
    finally:
        done.set()
    last = await emitting
    assert all([await task for task in looking])
    assert numbers(await read_all(connection, kept, oldest(url, kept))) == list(range(1, last + 1))


def _await_events(url: str, stream: int) -> None:
    """Wait until fifty more events are appended."""
    head = "SELECT sequence FROM heads WHERE stream_id = %s"
    [[began]] = ask(url, head, stream)
    eventually(lambda: ask(url, head, stream)[0][0] >= began + 50, "fifty more events")
