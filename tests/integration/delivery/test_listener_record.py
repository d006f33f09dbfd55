"""The recorder of listeners alone: what it writes and when. Each test has its own database."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from delivery.listening.listener_recorder import ListenerRecorder, recording_listeners
from delivery.listening.listener_rows import NewListener, RecordedRequest
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.stored import Cursor
from tests.databases import migrated_database
from tests.integration.callbacks_world import until

SEGMENT = "00000000-0000-4000-8000-000000000001"
EVERYTHING = RecordedRequest((1 << 64) - 1, "true", (), "all")


def at(sequence: int) -> Cursor:
    return Cursor(SEGMENT, sequence)


def new_listener(client: int = 1, *, transport: str = "websocket", after: int = 0) -> NewListener:
    return NewListener(1, client, 7, transport, "a", "cursor", at(after), EVERYTHING)


@pytest.fixture
def url() -> Iterator[str]:
    with migrated_database("listeners") as made:
        yield made


def rows(url: str, columns: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        query = f"SELECT {columns} FROM listeners ORDER BY id"
        return connection.execute(query.encode()).fetchall()


async def test_listeners_that_start_at_once_are_inserted_together(url: str) -> None:
    async with recording_listeners(url) as recorder:
        some = (recorder.start(new_listener(client), waits=True) for client in range(1_200))
        await asyncio.gather(*some)
        assert len(rows(url, "1")) == 1_200
        transactions = rows(url, "xmin::text")
    assert len(set(transactions)) <= 1_200 // limits.LISTENERS_PER_STATEMENT_MAX + 2


async def test_consecutive_requests_extend_one_row(url: str) -> None:
    async with recording_listeners(url) as recorder:
        for after in (0, 10, 20):
            entry = await recorder.start(new_listener(transport="poll", after=after), waits=False)
            assert entry is not None
            entry.advance(at(after + 10), 4).end("disconnected")
        other = await recorder.start(new_listener(transport="poll", after=5), waits=False)
        assert other is not None
        other.end("disconnected")
    found = rows(url, "sequence, delivered_sequence, delivered_events, end_reason")
    assert found == [(0, 30, 12, "disconnected"), (5, 5, 0, "disconnected")]


async def test_a_listener_of_more_than_a_day_continues_in_another_row(url: str) -> None:
    async with recording_listeners(url) as recorder:
        entry = await recorder.start(new_listener(), waits=True)
        assert entry is not None
        entry = entry.advance(at(10), 10)
        recorder.ticks += int(limits.LISTENER_ROW_S_MAX / limits.LISTENERS_WRITE_INTERVAL_S) + 1
        entry = entry.advance(at(15), 5)
        entry.advance(at(16), 1).end("stopped")
    found = rows(url, "start, sequence, delivered_sequence, delivered_events, end_reason")
    assert found == [("cursor", 0, 15, 15, "continued"), ("continued", 15, 16, 1, "stopped")]


async def test_above_the_bound_one_row_reports_that_later_ones_are_not_recorded(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LISTENERS_RECORDED_PER_CLIENT_HOUR", 3)
    async with recording_listeners(url) as recorder:
        entries = [await recorder.start(new_listener(), waits=True) for _ in range(6)]
        assert await recorder.start(new_listener(client=2), waits=True) is not None
    assert [entry is not None for entry in entries] == [True] * 3 + [False] * 3
    transports = [
        transport for client, transport in rows(url, "client_id, transport") if client == 1
    ]
    assert sorted(transports) == ["unrecorded", "websocket", "websocket", "websocket"]


async def test_a_listener_that_cannot_be_recorded_is_refused_and_the_next_one_is_not(
    url: str,
) -> None:
    async with recording_listeners(url) as recorder:
        await recorder.start(new_listener(), waits=True)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE listeners RENAME TO away")
            with pytest.raises(DatabaseUnavailable):
                await recorder.start(new_listener(), waits=True)
            connection.execute("ALTER TABLE away RENAME TO listeners")
        await recorder.start(new_listener(), waits=True)
    assert len(rows(url, "1")) == 2


async def test_progress_that_could_not_be_written_is_written_later(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LISTENERS_WRITE_INTERVAL_S", 0.02)
    async with recording_listeners(url) as recorder:
        entry = await recorder.start(new_listener(), waits=True)
        assert entry is not None
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE listeners RENAME TO away")
            entry.advance(at(10), 3).end("stopped")
            refused = recorder.ticks
            await until(lambda: recorder.ticks > refused + 2)
            connection.execute("ALTER TABLE away RENAME TO listeners")
        await until(lambda: rows(url, "delivered_events, end_reason") == [(3, "stopped")])


async def test_two_processes_that_find_no_partition_create_it_together(url: str) -> None:
    async with recording_listeners(url) as one, recording_listeners(url) as other:
        recorders: tuple[ListenerRecorder, ...] = (one, other)
        await asyncio.gather(
            *(recorder.start(new_listener(), waits=True) for recorder in recorders)
        )
    assert len({node for [node] in rows(url, "node")}) == 2
