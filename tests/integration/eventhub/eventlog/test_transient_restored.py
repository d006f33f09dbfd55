"""Transient streams of a new or restored database beside the same Redis: the ids of streams and
clients start again, so the ring of an id may be of another stream.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
import redis
from psycopg.conninfo import conninfo_to_dict

from eventhub.eventlog import streams, transient
from eventhub.eventlog.continuity import roll_all
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StreamInfo
from eventhub.eventlog.streams import StreamPolicy
from tests.databases import new_database
from tests.integration.eventlog_world import append_now, draft, execute, log_database, new_stream

REDIS_URL = os.environ["REDIS_URL"]
TIMEOUT_S = 60.0
database = pytest.fixture(log_database)


@pytest.fixture
def stream(database: str) -> Iterator[StreamInfo]:
    """Create a transient stream in a database with events, so that the log has a history."""
    execute(database, "UPDATE log_state SET history = gen_random_uuid()")
    with psycopg.connect(database) as connection:
        name = os.urandom(6).hex()
        made = streams.create_stream(connection, 1, name, StreamPolicy(durability="transient"))
    assert made is not None
    transient.erase(REDIS_URL, made.id)
    yield StreamInfo(made.id, 1, name, "transient")
    transient.erase(REDIS_URL, made.id)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Log]:
    async with Log.open(database_url=url, redis_url=REDIS_URL) as log:
        yield log


async def tail(log: Log, database: str) -> None:
    """Wait until the process reads the log's tail, so that it has noticed the server's start."""
    other = StreamInfo(new_stream(database), 1, "other")
    async with asyncio.timeout(TIMEOUT_S), log.follow(other, "now") as follower:
        append_now(database, draft(other.id))
        async for _ in follower:
            return


async def append(log: Log, stream: StreamInfo, number: int) -> Appended:
    [appended] = await log.append([draft(stream.id, number)], stream)
    return appended


async def test_a_stream_of_a_restored_database_has_no_events_of_the_database_before(
    database: str, stream: StreamInfo
) -> None:
    async with opened(database) as log:
        append_now(database, draft(new_stream(database)))
        before = await append(log, stream, 1)
    name = str(conninfo_to_dict(database)["dbname"])
    with new_database("restored", name) as restored:
        async with opened(restored) as log:
            found = await log.transient.resolve(stream.id, "oldest")
            assert (found.cursor.sequence, found.head) == (0, 0)
            assert found.cursor.segment != before.segment
        with psycopg.connect(restored) as connection:
            shown = transient.positions(connection, REDIS_URL, [stream.id])
        assert shown == {stream.id: (found.cursor.segment, 1, 0)}


async def test_a_process_that_did_not_notice_a_restore_removes_nothing(
    database: str, stream: StreamInfo
) -> None:
    async with opened(database) as unaware:
        await tail(unaware, database)
        before = await append(unaware, stream, 1)
        with psycopg.connect(database) as connection:
            roll_all(connection)
        async with opened(database) as log:
            first = await append(log, stream, 2)
            second = await append(unaware, stream, 3)
    assert [first.sequence, second.sequence] == [1, 2]
    assert first.segment == second.segment != before.segment


async def test_a_ring_without_a_history_continues(database: str, stream: StreamInfo) -> None:
    """A process of release 0.1, which may run beside during an upgrade, writes such a ring."""
    async with opened(database) as log:
        before = await append(log, stream, 1)
        with redis.Redis.from_url(REDIS_URL) as client:
            assert client.hdel(f"eventhub:{{t{stream.id}}}:meta", "history") == 1
        after = await append(log, stream, 2)
    assert (after.segment, after.sequence) == (before.segment, 2)


async def test_requests_at_the_same_time_share_one_read_of_the_history(
    database: str, stream: StreamInfo
) -> None:
    async with opened(database) as log:
        read, reads = log.transient.history._read, 0

        async def counted() -> str:
            nonlocal reads
            reads += 1
            return await read()

        log.transient.history._read = counted  # type: ignore[method-assign]
        appended = await asyncio.gather(*(append(log, stream, number) for number in range(50)))
    assert sorted(each.sequence for each in appended) == [*range(1, 51)]
    assert reads == 1
