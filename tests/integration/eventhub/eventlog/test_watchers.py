"""Appends are announced to the processes that follow their streams, and to no others; one that
begins to follow, loses its connection or is killed misses nothing, and costs nothing afterwards.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

import psycopg
import pytest

from eventhub.base import limits
from eventhub.eventlog.append import append_in
from eventhub.eventlog.log import Log
from eventhub.postgresql.connections import connect, notifications
from tests.databases import WAITING
from tests.integration.eventhub.eventlog.test_log_tail import TIMEOUT_S, found, reader
from tests.integration.eventlog_world import draft, log_database, new_stream

database = pytest.fixture(scope="module")(log_database)
FOLLOWS = """
import asyncio, sys
from eventhub.eventlog.append import append_in
from eventhub.eventlog.log import Log

async def follow():
    async with Log.open(database_url=sys.argv[1]) as log, log.follow(int(sys.argv[2]), "now"):
        await asyncio.Event().wait()

asyncio.run(follow())
"""
NAMED = "SELECT FROM heads WHERE stream_id = {stream} AND cardinality(watchers) = {count}"
LIVE = """
    SELECT FROM heads WHERE stream_id = {stream} AND cardinality(watchers) = 1
       AND watchers <@ (SELECT array_agg(pid) FROM pg_stat_activity) AND watchers[1] <> {other}
"""
GONE = "SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {backend})"


@pytest.fixture
async def log(database: str) -> AsyncIterator[Log]:
    async with Log.open(database_url=database) as opened:
        yield opened


@pytest.fixture
def without_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Announce only the first append of a process to a stream that nobody follows."""
    monkeypatch.setattr(limits, "STORED_INTERVAL_S", 3600.0)


@pytest.mark.usefixtures("without_signs_of_life")
async def test_only_appends_to_a_followed_stream_are_announced(database: str, log: Log) -> None:
    alone, followed = new_stream(database), new_stream(database)
    listening = await connect(database, name="listening")
    await listening.execute("LISTEN eventhub_heads")
    async with asyncio.timeout(TIMEOUT_S), Log.open(database_url=database) as other:
        announced = notifications(listening)
        await log.append([draft(alone)])  # announced for the log's maintenance, once in a while
        assert f"{alone}:1" in await anext(announced)
        await reader(other, followed)
        with psycopg.connect(database, autocommit=True) as connection:
            await found(connection, NAMED.format(stream=followed, count=1))
        for _ in range(3):
            await log.append([draft(alone)])
        await log.append([draft(followed)])
        assert await anext(announced) == f"{followed}:1"
    await listening.close()


@pytest.mark.usefixtures("without_signs_of_life")
async def test_a_process_does_not_announce_to_itself(database: str, log: Log) -> None:
    own, followed = new_stream(database), new_stream(database)
    listening = await connect(database, name="listening")
    await listening.execute("LISTEN eventhub_heads")
    async with asyncio.timeout(TIMEOUT_S), Log.open(database_url=database) as other:
        announced = notifications(listening)
        await log.append([draft(own)])
        assert f"{own}:1" in await anext(announced)
        mine = await reader(log, own)
        await reader(other, followed)
        with psycopg.connect(database, autocommit=True) as connection:
            for stream in (own, followed):
                await found(connection, NAMED.format(stream=stream, count=1))
        await log.append([draft(own)])
        assert await mine.has(1) == [2]
        await log.append([draft(followed)])
        assert await anext(announced) == f"{followed}:1"
    await listening.close()


@pytest.mark.usefixtures("without_signs_of_life")
async def test_a_process_that_begins_to_follow_misses_nothing(
    database: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the poll that finds what a NOTIFY did not announce."""
    monkeypatch.setattr(limits, "HEAD_POLL_INTERVAL_S", 3600.0)
    monkeypatch.setattr(limits, "HEAD_IDLE_INTERVAL_S", 3600.0)
    monkeypatch.setattr(limits, "HEAD_REST_INTERVAL_S", 3600.0)
    streams = [new_stream(database) for _ in range(40)]

    async def write(stream: int) -> None:
        for number in range(30):
            await log.append([draft(stream, number)])

    async with Log.open(database_url=database) as other:
        for stream in streams:
            writing = asyncio.create_task(write(stream))
            followers = [await reader(other, stream) for _ in range(2)]
            await writing
            await log.append([draft(stream, 30)])
            for follower in followers:
                while not follower.seen or follower.seen[-1] < 31:
                    await follower.has(len(follower.seen) + 1)
                assert follower.seen == list(range(follower.seen[0], 32))


async def test_an_append_that_began_before_a_process_was_named_is_found(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append holds the head's lock, is not announced, and no later event brings it along."""
    for name in ("HEAD_POLL_INTERVAL_S", "HEAD_IDLE_INTERVAL_S", "HEAD_REST_INTERVAL_S"):
        monkeypatch.setattr(limits, name, 3600.0)
    stream = new_stream(database)
    async with Log.open(database_url=database) as other:
        with (
            psycopg.connect(database) as appending,
            psycopg.connect(database, autocommit=True) as connection,
        ):
            appending.execute("SELECT 1")
            append_in(appending, [draft(stream)])
            follower = await reader(other, stream)
            await found(connection, WAITING)  # the process is to be named
            await other.tail.wait_for_poll(1.0)  # it has looked at the heads, and found nothing
            appending.commit()
            assert await follower.has(1) == [1]


async def test_a_process_is_named_again_when_its_connection_was_lost(
    database: str, log: Log
) -> None:
    stream = new_stream(database)
    async with Log.open(database_url=database) as other:
        follower = await reader(other, stream)
        with psycopg.connect(database, autocommit=True) as connection:
            await found(connection, NAMED.format(stream=stream, count=1))
            query = "SELECT watchers[1] FROM heads WHERE stream_id = %s"
            [(backend,)] = connection.execute(query, (stream,)).fetchall()
            connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
            await log.append([draft(stream)])
            await found(connection, LIVE.format(stream=stream, other=backend))
        await log.append([draft(stream)])
        assert await follower.has(2) == [1, 2]


async def test_the_name_of_a_killed_process_is_removed_when_the_next_one_listens(
    database: str, log: Log
) -> None:
    stream = new_stream(database)
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FOLLOWS, database, str(stream)
    )
    with psycopg.connect(database, autocommit=True) as connection:
        await found(connection, NAMED.format(stream=stream, count=1))
        query = "SELECT watchers[1] FROM heads WHERE stream_id = %s"
        [(backend,)] = connection.execute(query, (stream,)).fetchall()
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        await found(connection, GONE.format(backend=backend))
        async with Log.open(database_url=database) as other:
            follower = await reader(other, stream)
            await found(connection, LIVE.format(stream=stream, other=backend))
            await log.append([draft(stream)])
            assert await follower.has(1) == [1]


async def test_an_append_larger_than_the_sockets_buffer_is_stored(database: str, log: Log) -> None:
    stream = new_stream(database)
    sent = [draft(stream, number, size=900_000) for number in range(8)]
    follower = await reader(log, stream)
    assert [one.sequence for one in await log.append(sent)] == list(range(1, 9))
    assert await follower.has(8) == list(range(1, 9))
