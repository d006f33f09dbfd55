"""The record of listens by itself: what is written when, and what is not. Each test has a database
of its own.
"""

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


def begun(client: int = 1, *, transport: str = "websocket", after: int = 0) -> NewListener:
    return NewListener(1, client, 7, transport, "a", "cursor", at(after), EVERYTHING)


@pytest.fixture
def url() -> Iterator[str]:
    with migrated_database("listeners") as made:
        yield made


def rows(url: str, columns: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        query = f"SELECT {columns} FROM listeners ORDER BY id"
        return connection.execute(query.encode()).fetchall()


async def test_many_that_begin_at_once_are_written_together(url: str) -> None:
    async with recording_listeners(url) as record:
        some = (record.begin(begun(client), waits=True) for client in range(1_200))
        await asyncio.gather(*some)
        assert len(rows(url, "1")) == 1_200
        transactions = rows(url, "xmin::text")
    assert len(set(transactions)) <= 1_200 // limits.LISTENERS_PER_STATEMENT_MAX + 2


async def test_requests_that_follow_one_another_prolong_a_row(url: str) -> None:
    async with recording_listeners(url) as record:
        for after in (0, 10, 20):
            entry = await record.begin(begun(transport="poll", after=after), waits=False)
            assert entry is not None
            entry.moved(at(after + 10), 4).end("disconnected")
        other = await record.begin(begun(transport="poll", after=5), waits=False)
        assert other is not None
        other.end("disconnected")
    found = rows(url, "sequence, delivered_sequence, delivered_events, end_reason")
    assert found == [(0, 30, 12, "disconnected"), (5, 5, 0, "disconnected")]


async def test_a_listen_of_more_than_a_day_goes_on_as_another_row(url: str) -> None:
    async with recording_listeners(url) as record:
        entry = await record.begin(begun(), waits=True)
        assert entry is not None
        entry = entry.moved(at(10), 10)
        record.ticks += int(limits.LISTENER_ROW_S_MAX / limits.LISTENERS_WRITE_INTERVAL_S) + 1
        entry = entry.moved(at(15), 5)
        entry.moved(at(16), 1).end("stopped")
    found = rows(url, "start, sequence, delivered_sequence, delivered_events, end_reason")
    assert found == [("cursor", 0, 15, 15, "continued"), ("continued", 15, 16, 1, "stopped")]


async def test_beyond_the_bound_it_is_said_once_that_more_are_not_kept(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LISTENERS_RECORDED_PER_CLIENT_HOUR", 3)
    async with recording_listeners(url) as record:
        entries = [await record.begin(begun(), waits=True) for _ in range(6)]
        assert await record.begin(begun(client=2), waits=True) is not None
    assert [entry is not None for entry in entries] == [True] * 3 + [False] * 3
    transports = [
        transport for client, transport in rows(url, "client_id, transport") if client == 1
    ]
    assert sorted(transports) == ["unrecorded", "websocket", "websocket", "websocket"]


async def test_who_cannot_be_put_on_record_is_refused_and_the_next_one_is_not(url: str) -> None:
    async with recording_listeners(url) as record:
        await record.begin(begun(), waits=True)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE listeners RENAME TO away")
            with pytest.raises(DatabaseUnavailable):
                await record.begin(begun(), waits=True)
            connection.execute("ALTER TABLE away RENAME TO listeners")
        await record.begin(begun(), waits=True)
    assert len(rows(url, "1")) == 2


async def test_what_could_not_be_written_of_a_listen_is_written_later(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LISTENERS_WRITE_INTERVAL_S", 0.02)
    async with recording_listeners(url) as record:
        entry = await record.begin(begun(), waits=True)
        assert entry is not None
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE listeners RENAME TO away")
            entry.moved(at(10), 3).end("stopped")
            refused = record.ticks
            await until(lambda: record.ticks > refused + 2)
            connection.execute("ALTER TABLE away RENAME TO listeners")
        await until(lambda: rows(url, "delivered_events, end_reason") == [(3, "stopped")])


async def test_two_processes_that_find_no_partition_make_it_together(url: str) -> None:
    async with recording_listeners(url) as one, recording_listeners(url) as other:
        records: tuple[ListenerRecorder, ...] = (one, other)
        await asyncio.gather(*(record.begin(begun(), waits=True) for record in records))
    assert len({node for [node] in rows(url, "node")}) == 2
