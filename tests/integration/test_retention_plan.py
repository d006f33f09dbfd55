"""One segment of a plan dropped: what keeps it is looked up under the lock that changes of policies
take.
"""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from eventhub.base.clock import SystemClock
from eventhub.eventlog import streams
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.retention.drop import (
    Planned,
    RetentionHooks,
    drop_planned,
    is_to_be_cleaned,
    retained_by,
)
from eventhub.postgresql.connections import Connection
from sparkjobs.runs.retention.apply import ApplyTarget, apply_actions
from sparkjobs.runs.retention.plan import PlannedAction
from tests.integration.eventlog_world import execute, log_database, new_stream
from tests.integration.retention_world import (
    NO_HOOKS,
    NOW_US,
    announced,
    ask,
    connected,
    fill,
    next_group,
    tiers,
)

url = pytest.fixture(log_database)


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connected(url) as opened:
        yield opened


def planned(url: str, stream: int) -> list[Planned]:
    rows = ask(
        url, "SELECT id, uuid::text FROM segments WHERE stream_id = %s ORDER BY first", stream
    )
    return [Planned(*row) for row in rows]


def needing(stream: int, lowest: int) -> RetentionHooks:
    async def needs(_connection: Connection) -> dict[int, int]:
        return {stream: lowest}

    return RetentionHooks(needs=needs)


async def test_what_is_needed_held_open_or_to_be_archived_stays(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 35)
    first, second, third, opened = planned(url, stream)
    hooks = needing(stream, 15)
    assert await drop_planned(connection, hooks, second, NOW_US) == "needed"
    assert await drop_planned(connection, hooks, first, NOW_US) == ""
    assert await drop_planned(connection, hooks, first, NOW_US) == "gone"
    assert await drop_planned(connection, hooks, opened, NOW_US) == "open"
    stranger = Planned(second.segment_id, first.segment)
    assert await drop_planned(connection, NO_HOOKS, stranger, NOW_US) == "gone"
    execute(url, "UPDATE streams SET archive = true WHERE id = %s", stream)
    assert await drop_planned(connection, NO_HOOKS, second, NOW_US) == "not_archived"
    execute(url, "UPDATE segments SET archive_path = 'x' WHERE id = %s", second.segment_id)
    assert await drop_planned(connection, NO_HOOKS, second, NOW_US) == ""
    execute(url, "UPDATE streams SET archive = false, hold = '' WHERE id = %s", stream)
    assert await drop_planned(connection, NO_HOOKS, third, NOW_US) == "hold"
    assert tiers(url, stream) == ["dropped", "archived", "live", "live"]
    [told] = announced(url, "stream.trimmed")  # what is in the archive can be read on
    assert (told["first"], told["events"], told["reason"]) == (11, 10, "plan")


async def test_what_was_done_before_comes_first(url: str, connection: Connection) -> None:
    """It is found at once, and the time of a request is left for the rest."""
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 35)
    acts = [
        PlannedAction("", "a", one.segment_id, one.segment, 1, 1, 10, 0, "drop", "age")
        for one in planned(url, stream)[:3]
    ]
    hub = ApplyTarget(connection, NO_HOOKS, SystemClock(), archive=None)
    assert [one.outcome async for one in apply_actions(hub, acts[1:2])] == ["done"]
    went = [(acts.index(one.act), one.outcome, one.why) async for one in apply_actions(hub, acts)]
    assert went == [(1, "unchanged", "gone"), (0, "done", ""), (2, "done", "")]


async def test_an_archive_that_is_away_is_asked_once(url: str, connection: Connection) -> None:
    """However many segments wait for its word; each may take a minute to be refused."""
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 45)
    execute(url, "UPDATE segments SET archive_path = 'x.json' WHERE stream_id = %s", stream)
    asked: list[asyncio.StreamWriter] = []

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(writer)
        writer.close()

    away = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    host, port = away.sockets[0].getsockname()
    acts = [
        PlannedAction("", "a", one.segment_id, one.segment, 1, 1, 10, 0, "drop", "age")
        for one in planned(url, stream)[:4]
    ]
    hub = ApplyTarget(connection, NO_HOOKS, SystemClock(), ArchiveFolder(f"http://{host}:{port}/"))
    async with away:
        alone = [one.why async for one in apply_actions(hub, acts[:1])]
        once = len(asked)
        all_four = [one.why async for one in apply_actions(hub, acts)]
    assert (alone, all_four) == (["archive_unavailable"], ["archive_unavailable"] * 4)
    assert (once > 0, len(asked)) == (True, 2 * once)
    assert tiers(url, stream) == ["live"] * 5


async def test_a_lagging_cursor_keeps_nothing_where_the_policy_does_not_wait(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 15)
    execute(url, "UPDATE streams SET on_lag = 'drop' WHERE id = %s", stream)
    [sealed, _] = planned(url, stream)
    assert await drop_planned(connection, needing(stream, 1), sealed, NOW_US) == ""


async def test_a_hold_that_is_just_being_placed_is_waited_for(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 15)
    [sealed, _] = planned(url, stream)
    with psycopg.connect(url) as placing:
        streams.lock_system(placing)
        placing.execute("UPDATE streams SET hold = 'case 7' WHERE id = %s", (stream,))
        dropping = asyncio.create_task(drop_planned(connection, NO_HOOKS, sealed, NOW_US))
        waiting = (
            "SELECT 1 FROM pg_locks WHERE NOT granted AND pid = %s",
            connection.info.backend_pid,
        )
        while not ask(url, *waiting):
            await asyncio.sleep(0)
            assert not dropping.done()
        placing.commit()
    assert await dropping == "hold"
    assert tiers(url, stream) == ["live", "live"]


async def test_what_is_asked_changes_nothing(url: str, connection: Connection) -> None:
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 15)
    [sealed, _] = planned(url, stream)
    assert await retained_by(connection, NO_HOOKS, sealed) == ""
    assert not await is_to_be_cleaned(connection, sealed, 1)
    await next_group(url)
    assert await is_to_be_cleaned(connection, sealed, 1)
    assert not await is_to_be_cleaned(connection, sealed, 2)
    assert tiers(url, stream) == ["live", "live"]
