"""A crash of PostgreSQL loses commits that did not wait for the disk. Sequences that readers have
received are assigned again, in a new segment, and every reader gets a mismatch (EMC-15, EMC-16).
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from eventhub.base import errors
from eventhub.event.envelope import Event
from eventhub.eventlog import continuity, streams
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.stored import Cursor, StreamInfo
from eventhub.eventlog.streams import StreamPolicy
from eventhub.supervisor.embedded import embedded
from tests.databases import migrate
from tests.integration.eventlog_world import draft

TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a PostgreSQL server that flushes its WAL late."""
    saved = {name: os.environ.pop(name, None) for name in ("DATABASE_URL", "REDIS_URL")}
    folder = Path(tmp_path_factory.mktemp("continuity"))
    try:
        with embedded(folder) as env:
            url = env["DATABASE_URL"]
            migrate(url)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
                connection.execute("ALTER SYSTEM SET wal_writer_flush_after = '1GB'")
                connection.execute("SELECT pg_reload_conf()")
            yield url
    finally:
        os.environ.update({name: value for name, value in saved.items() if value is not None})


@pytest.fixture
def marks_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file://{tmp_path_factory.getbasetemp()}"


@pytest.fixture
async def log(server: str, marks_url: str) -> AsyncIterator[Log]:
    async with Log.open(database_url=server, mark_url=marks_url) as opened:
        yield opened


def new_stream(url: str, name: str, durability: streams.Durability) -> StreamInfo:
    with psycopg.connect(url) as connection:
        made = streams.create_stream(connection, 1, name, StreamPolicy(durability=durability))
    assert made is not None
    return StreamInfo(made.id, 1, name, durability)


def life(url: str) -> list[tuple[object]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT since FROM incarnation").fetchall()


async def crash(url: str) -> None:
    """Kill one backend with SIGKILL: the server ends all of them and recovers from its WAL. Return
    when it accepts connections again.
    """
    before = life(url)
    with psycopg.connect(url, autocommit=True) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with suppress(psycopg.OperationalError):
                if life(url) != before:
                    return
            await asyncio.sleep(0.01)


async def append(log: Log, stream: StreamInfo, count: int) -> list[Appended]:
    """Append as soon as the database accepts connections."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                drafts = [draft(stream.id, number) for number in range(count)]
                return await log.append(drafts, stream)
            except (errors.DatabaseUnavailable, errors.OutcomeUnknown):
                await asyncio.sleep(0.01)


async def outcome(follower: Follower) -> BaseException | int:
    """Return what a reader gets next."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                async for stored in follower:
                    return stored.sequence
            except errors.DatabaseUnavailable:
                await asyncio.sleep(0.01)
            except errors.EventHubError as error:
                return error


async def test_after_a_crash_async_streams_have_a_new_segment_and_readers_get_a_mismatch(
    server: str, log: Log
) -> None:
    stream = new_stream(server, "async", "async")
    [held] = await append(log, stream, 1)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CHECKPOINT")  # the first is on the disk, the fifty after it are not
    async with log.follow(stream, Cursor(held.segment, held.sequence)) as follower:
        shown = await append(log, stream, 50)
        for stored in follower.next_in_ring(50) or []:
            follower.advance_to(stored)
        assert follower.cursor == Cursor(held.segment, 51)
        await crash(server)
        [again] = await append(log, stream, 1)
        assert again.segment != held.segment
        assert again.sequence <= shown[-1].sequence, "nothing was lost, so nothing was shown here"
        error = await outcome(follower)
    assert isinstance(error, errors.SegmentMismatch)
    assert error.details["current"]["segment"] == again.segment
    async with log.follow(stream, "oldest") as reader:
        assert await outcome(reader) == 1


async def test_a_crash_loses_no_event_of_a_sync_stream_and_its_readers_go_on(
    server: str, log: Log
) -> None:
    stream = new_stream(server, "sync", "sync")
    [*_, held] = await append(log, stream, 50)
    async with log.follow(stream, Cursor(held.segment, held.sequence)) as follower:
        await crash(server)
        [next_one] = await append(log, stream, 1)
        assert (next_one.segment, next_one.sequence) == (held.segment, 51)
        assert await outcome(follower) == 51


async def test_the_recovery_is_announced_once_for_all_processes(
    server: str, log: Log, marks_url: str
) -> None:
    stream = new_stream(server, "announced", "async")
    await append(log, stream, 1)
    other_log = Log.open(database_url=server, mark_url=marks_url)
    async with log.follow(1, "now") as system, other_log as other:
        await crash(server)
        await asyncio.gather(append(log, stream, 1), append(other, stream, 1))
        recovered: list[Event] = []
        async with asyncio.timeout(TIMEOUT_S):
            while not recovered:
                try:
                    recovered += [stored.event for stored in await system.catch_up()]
                except errors.DatabaseUnavailable:
                    await asyncio.sleep(0.01)
    assert [event.type for event in recovered] == ["log.recovered"]
    assert recovered[0].attributes["reason"] == "crashed"


async def test_on_another_server_every_stream_has_a_new_segment(
    server: str, marks_url: str
) -> None:
    new_stream(server, "moved", "sync")
    await continuity.prove_continuity(server, marks_url)
    with psycopg.connect(server) as connection:
        before = connection.execute("SELECT stream_id, segment FROM heads").fetchall()
        connection.execute("UPDATE log_state SET system_identifier = 1")
        connection.execute("DELETE FROM incarnation")  # as in the files of another server
    proof = await continuity.prove_continuity(server, marks_url)
    with psycopg.connect(server) as connection:
        after = connection.execute("SELECT stream_id, segment FROM heads").fetchall()
    assert (proof.reason, proof.streams) == ("restored", len(before))
    assert not set(before) & set(after)


async def test_a_change_before_the_log_is_proved_is_refused(server: str, marks_url: str) -> None:
    """A management change is appended by another connection than those that prove the log."""
    await continuity.prove_continuity(server, marks_url)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DELETE FROM incarnation")  # as after a crash
        with pytest.raises(errors.DatabaseUnavailable), connection.transaction():
            append_in(connection, [draft(1)])
        await continuity.prove_continuity(server, marks_url)
        with connection.transaction():
            append_in(connection, [draft(1)])


def test_all_streams_can_be_rolled_manually(server: str) -> None:
    with psycopg.connect(server) as connection:
        before = connection.execute("SELECT stream_id, segment FROM heads").fetchall()
        assert continuity.roll_all(connection) == len(before)
        after = connection.execute("SELECT stream_id, segment FROM heads").fetchall()
    assert not set(before) & set(after)
