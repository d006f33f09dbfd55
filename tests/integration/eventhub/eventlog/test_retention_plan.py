"""Applying a plan to one segment: what retains it is checked under the lock that changes of
policies take.
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


async def test_needed_held_open_and_unarchived_segments_are_not_dropped(
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
    [trimmed] = announced(url, "stream.trimmed")  # what is in the archive can be read on
    assert (trimmed["first"], trimmed["events"], trimmed["reason"]) == (11, 10, "plan")


async def test_drops_that_were_done_before_come_first(url: str, connection: Connection) -> None:
    """They are found first, so that the rest of the request's time remains for other segments."""
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 35)
    actions = [
        PlannedAction("", "a", one.segment_id, one.segment, 1, 1, 10, 0, "drop", "age")
        for one in planned(url, stream)[:3]
    ]
    target = ApplyTarget(connection, NO_HOOKS, SystemClock(), archive=None)
    assert [one.outcome async for one in apply_actions(target, actions[1:2])] == ["done"]
    outcomes = [
        (actions.index(one.action), one.outcome, one.reason)
        async for one in apply_actions(target, actions)
    ]
    assert outcomes == [(1, "unchanged", "gone"), (0, "done", ""), (2, "done", "")]


async def test_an_unavailable_archive_is_tried_once(url: str, connection: Connection) -> None:
    """An attempt may take a minute, so it is not repeated for each segment."""
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 45)
    execute(url, "UPDATE segments SET archive_path = 'x.json' WHERE stream_id = %s", stream)
    requests: list[asyncio.StreamWriter] = []

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(writer)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    actions = [
        PlannedAction("", "a", one.segment_id, one.segment, 1, 1, 10, 0, "drop", "age")
        for one in planned(url, stream)[:4]
    ]
    target = ApplyTarget(
        connection, NO_HOOKS, SystemClock(), ArchiveFolder(f"http://{host}:{port}/")
    )
    async with server:
        alone = [one.reason async for one in apply_actions(target, actions[:1])]
        once = len(requests)
        all_four = [one.reason async for one in apply_actions(target, actions)]
    assert (alone, all_four) == (["archive_unavailable"], ["archive_unavailable"] * 4)
    assert (once > 0, len(requests)) == (True, 2 * once)
    assert tiers(url, stream) == ["live"] * 5


async def test_a_lagging_cursor_retains_nothing_under_on_lag_drop(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 15)
    execute(url, "UPDATE streams SET on_lag = 'drop' WHERE id = %s", stream)
    [sealed, _] = planned(url, stream)
    assert await drop_planned(connection, needing(stream, 1), sealed, NOW_US) == ""


async def test_a_plan_waits_for_a_hold_that_is_being_placed(
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


async def test_checking_a_plan_changes_nothing(url: str, connection: Connection) -> None:
    stream = new_stream(url, segment_events_max=10)
    fill(url, stream, 1, 15)
    [sealed, _] = planned(url, stream)
    assert await retained_by(connection, NO_HOOKS, sealed) == ""
    assert not await is_to_be_cleaned(connection, sealed, 1)
    await next_group(url)
    assert await is_to_be_cleaned(connection, sealed, 1)
    assert not await is_to_be_cleaned(connection, sealed, 2)
    assert tiers(url, stream) == ["live", "live"]
