"""Following a stream: NOTIFY, polling the heads, rows that the process appended itself, and the
switch from the log to the ring.
"""

import asyncio
import resource
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from eventhub.base import errors, limits
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import NewRow
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import Start
from tests.databases import WAITING
from tests.integration.eventlog_world import (
    append_now,
    draft,
    execute,
    log_database,
    new_stream,
    payload,
)

database = pytest.fixture(scope="module")(log_database)
TIMEOUT_S = 60.0
LISTENING = """
    SELECT FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'eventhub listen'
       AND query LIKE 'LISTEN%' AND state = 'idle' AND backend_start > '{since}'
    HAVING count(*) = 2
"""
LOST = "DELETE FROM events e USING segments s WHERE e.segment_id = s.id AND s.stream_id = %s"


@pytest.fixture
async def log(database: str) -> AsyncIterator[Log]:
    async with Log.open(database_url=database) as opened:
        yield opened


class FollowingReader:
    """Follows a stream in a task of its own and stores the events."""

    def __init__(self, log: Log, stream_id: int, start: Start = "now") -> None:
        self.seen: list[int] = []
        self.began = asyncio.Event()
        self._more = asyncio.Event()
        self.task = asyncio.create_task(self._run(log, stream_id, start))

    async def _run(self, log: Log, stream_id: int, start: Start) -> None:
        async with log.follow(stream_id, start) as follower:
            self.began.set()
            async for stored in follower:
                self.seen.append(stored.sequence)
                self._more.set()

    async def has(self, count: int) -> list[int]:
        """Return the events, once there are so many."""
        async with asyncio.timeout(TIMEOUT_S):
            while len(self.seen) < count:
                self._more.clear()
                await self._more.wait()
        return self.seen

    async def fails(self) -> BaseException:
        """Return the error that ends the reader."""
        async with asyncio.timeout(TIMEOUT_S):
            [error] = await asyncio.gather(self.task, return_exceptions=True)
        assert isinstance(error, BaseException)
        return error


async def reader(log: Log, stream_id: int, start: Start = "now") -> FollowingReader:
    made = FollowingReader(log, stream_id, start)
    began = asyncio.create_task(made.began.wait())
    await asyncio.wait({began, made.task}, return_when=asyncio.FIRST_COMPLETED)
    if made.task.done():
        made.task.result()  # why it never began
    return made


async def test_a_lost_notify_is_recovered_by_polling_the_heads(database: str, log: Log) -> None:
    stream = new_stream(database)
    follower = await reader(log, stream)
    append_now(database, *(draft(stream, n) for n in range(3)))
    assert await follower.has(3) == [1, 2, 3]


async def test_a_notify_alone_brings_the_events_of_another_process(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_POLL_INTERVAL_S", 3600.0)
    stream = new_stream(database)
    with psycopg.connect(database, autocommit=True) as connection:
        [(since,)] = connection.execute("SELECT clock_timestamp()").fetchall()
        async with (
            Log.open(database_url=database) as log,
            Log.open(database_url=database) as other,
        ):
            follower = await reader(log, stream)
            await found(connection, LISTENING.format(since=since))
            await other.append([draft(stream)])
            assert await follower.has(1) == [1]
            ring = log.tail.rings.get(stream)
            [(head,)] = connection.execute(
                "SELECT sequence FROM heads WHERE stream_id = 1"
            ).fetchall()
            assert ring is not None
            assert ring.system_at(1) == head


async def test_two_processes_appending_at_once_give_all_readers_the_same_sequences(
    database: str, log: Log
) -> None:
    stream = new_stream(database, segment_events_max=40)
    async with Log.open(database_url=database) as other:
        readers = [await reader(one, stream) for one in (log, other, log)]

        async def write(one: Log) -> None:
            for number in range(150):
                await one.append([draft(stream, number)])

        await asyncio.gather(write(log), write(other), write(log), write(other))
        for follower in readers:
            assert await follower.has(600) == list(range(1, 601))


async def found(connection: psycopg.Connection[Any], query: str) -> None:
    """Wait until the query returns a row."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            if connection.execute(query.encode()).fetchall():
                return
            await asyncio.sleep(0.01)


async def test_rows_pushed_while_the_tail_awaits_its_select_are_neither_doubled_nor_lost(
    database: str, log: Log
) -> None:
    """The defect named in FACTS: the tail read the rows that the appender pushed meanwhile, and
    added them to the ring again.
    """
    stream = new_stream(database)
    follower = await reader(log, stream)
    with (
        psycopg.connect(database) as holds,
        psycopg.connect(database, autocommit=True) as watch,
    ):
        holds.execute("LOCK TABLE segments IN ACCESS EXCLUSIVE MODE")
        foreign = append_now(database, *(draft(stream, n) for n in (1, 2, 3)))
        await found(watch, WAITING)  # the tail saw the head and awaits its SELECT
        known = [NewRow(stream, p.segment, p.sequence, 1, 0, payload(p.sequence)) for p in foreign]
        log.tail.committed(known[:2])
        assert await follower.has(2) == [1, 2]
        await log.append([draft(stream, 4)])  # above a hole
        holds.rollback()
        assert await follower.has(4) == [1, 2, 3, 4]
    await log.append([draft(stream, 5)])
    assert await follower.has(5) == [1, 2, 3, 4, 5]


async def test_a_reader_behind_the_ring_catches_up_without_gap_or_duplicate(
    database: str, log: Log
) -> None:
    stream = new_stream(database, segment_events_max=100)
    for first in range(0, 2_000, 500):
        append_now(database, *(draft(stream, n) for n in range(first, first + 500)))

    async def write() -> None:
        for number in range(200):
            await log.append([draft(stream, number)])

    live = await reader(log, stream)
    writing = asyncio.create_task(write())
    late = await reader(log, stream, "oldest")
    assert await late.has(2_200) == list(range(1, 2_201))
    assert await live.has(200) == list(range(2_001, 2_201))
    await writing


@pytest.mark.parametrize(
    ("lost", "seen"),
    [
        ("sequence = 1", 0),
        ("sequence = 4", 3),
        ("sequence = 5", 4),
        ("sequence BETWEEN 6 AND 10", 5),
        ("sequence = 12", 11),
        ("sequence = 13", 12),
        ("sequence > 10", 10),
    ],
    ids=["first", "middle", "end", "segment", "in open", "end of open", "all of open"],
)
async def test_a_missing_row_stops_the_reader_there_with_log_hole(
    database: str, log: Log, lost: str, seen: int
) -> None:
    stream = new_stream(database, segment_events_max=5)
    append_now(database, *(draft(stream, n) for n in range(1, 14)))
    execute(database, f"{LOST} AND {lost}", stream)
    follower = await reader(log, stream, "oldest")
    assert isinstance(await follower.fails(), errors.LogHole)
    assert follower.seen == list(range(1, seen + 1))


@pytest.mark.parametrize("lost", ["first", "last"])
async def test_a_row_missing_at_the_tail_stops_only_its_readers(
    database: str, log: Log, lost: str
) -> None:
    """A stream with a hole once stopped the polling of later streams, and its own readers waited
    forever.
    """
    broken, sound = new_stream(database), new_stream(database)
    follower, other = await reader(log, broken), await reader(log, sound)
    with psycopg.connect(database) as connection, connection.transaction():
        connection.execute("SELECT 1")
        places = append_in(connection, [draft(broken, 1), draft(broken, 2)])
        missing = places[0 if lost == "first" else 1].sequence
        connection.execute(f"{LOST} AND sequence = {missing}".encode(), (broken,))
    append_now(database, draft(sound))
    assert isinstance(await follower.fails(), errors.LogHole)
    assert follower.seen == list(range(1, missing))
    assert await other.has(1) == [1]
    later = await reader(log, broken)
    await log.append([draft(broken, 3)])
    assert await later.has(1) == [3]


async def test_a_segment_dropped_before_the_tail_read_it_is_a_gap(database: str, log: Log) -> None:
    stream = new_stream(database, segment_events_max=2)
    follower = await reader(log, stream)
    with psycopg.connect(database) as connection, connection.transaction():
        connection.execute("SELECT 1")
        append_in(connection, [draft(stream, n) for n in range(1, 6)])
        dropped = "UPDATE segments SET tier = 'dropped' WHERE stream_id = %s AND first < 5"
        connection.execute(dropped, (stream,))
    error = await follower.fails()
    assert isinstance(error, errors.Gone)
    assert error.details["first_available"]["sequence"] == 5
    later = await reader(log, stream)
    append_now(database, draft(stream, 6))
    assert await later.has(1) == [6]


@pytest.mark.parametrize("turns", range(5))
async def test_a_notify_during_close_does_not_keep_the_log_open(database: str, turns: int) -> None:
    """In Python 3.11 `wait_for` loses a cancellation that arrives with the result."""
    stream = new_stream(database)

    async def use() -> None:
        async with Log.open(database_url=database) as log, log.follow(stream, "now"):
            await log.append([draft(stream)])  # the tail is at rest behind it
            await asyncio.sleep(0.05)
            log.tail.committed([NewRow(stream, "s", 9, 1, 0, b"")])  # above a hole: it is woken
            for _ in range(turns):
                await asyncio.sleep(0)

    using = asyncio.create_task(use())
    _, late = await asyncio.wait({using}, timeout=TIMEOUT_S)
    assert not late
    await using


async def test_a_log_without_readers_rarely_wakes(database: str, log: Log) -> None:
    """The listening connection alone woke ten times a second, and polling four times."""
    await log.append([draft(new_stream(database))])  # all connections are there
    async with log.follow(1, "now"):  # as the authorizer of every process does
        await asyncio.sleep(1.0)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        await asyncio.sleep(2.0)
        woken = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
    assert woken <= 12


async def test_an_idle_log_is_polled_as_soon_as_a_cache_relies_on_it(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached rights are valid only with a recent poll, and polls are rare while no cache is
    in use.
    """
    monkeypatch.setattr(limits, "HEAD_USED_S", 0.0)
    monkeypatch.setattr(limits, "HEAD_REST_INTERVAL_S", 3600.0)
    clock = asyncio.get_running_loop().time
    async with log.follow(1, "now") as follower:
        await log.tail.wait_for_poll(TIMEOUT_S)
        await log.tail.wait_for_poll(1.0)  # and once more, if the process was named after that
        rested_s = clock()
        log.tail.keep_confirmed(asyncio.get_running_loop().time())
        await log.tail.wait_for_poll(TIMEOUT_S)
        assert rested_s < follower.ring.confirmed_s < rested_s + TIMEOUT_S / 2
