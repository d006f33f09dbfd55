"""A log database with a maintenance connection, for the tests of retention and cleaning."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.partitions import create_partition
from eventhub.eventlog.read import read
from eventhub.eventlog.retention.cleaning import Fence, clean
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import Connection, connect
from tests.integration.eventlog_world import append_now, draft

NO_HOOKS = RetentionHooks()
ENOUGH = StorageBudget(0)  # no quota, no disk
NOW_US = 1_900_000_000_000_000  # later than anything these tests append


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection = await connect(url, name="test")
    try:
        yield connection
    finally:
        await connection.close()


def ask(url: str, query: str, *args: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode(), args)
        return cursor.fetchall() if cursor.description else []


def fill(url: str, stream_id: int, first: int, last: int, *, size: int = 0) -> None:
    """Append numbered events, in transactions of a hundred."""
    for start in range(first, last + 1, 100):
        numbers = range(start, min(start + 100, last + 1))
        append_now(url, *(draft(stream_id, number, size=size) for number in numbers))


def tiers(url: str, stream_id: int) -> list[str]:
    """Return the tiers of a stream's segments, in order."""
    rows = ask(url, "SELECT tier FROM segments WHERE stream_id = %s ORDER BY first, id", stream_id)
    return [row[0] for row in rows]


def announced(url: str, kind: str) -> list[dict[str, Any]]:
    """Return the attributes of the events of a type in `system`, in order."""
    rows = ask(
        url,
        "SELECT e.payload FROM events e JOIN segments s ON s.id = e.segment_id"
        " AND s.partition_id = e.partition_id WHERE s.stream_id = 1 ORDER BY e.sequence",
    )
    events = [decode(bytes(row[0])) for row in rows]
    return [dict(event.attributes) for event in events if event.type == kind]


async def read_all(connection: Connection, stream_id: int, after: Cursor) -> list[StoredEvent]:
    """Read everything after a cursor, page by page."""
    found: list[StoredEvent] = []
    while True:
        page = await read(connection, stream_id, after)
        assert isinstance(page, list), page
        if not page:
            return found
        found += page
        after = page[-1].cursor


def oldest(url: str, stream_id: int) -> Cursor:
    """Return the cursor before the first readable event."""
    [[segment, first]] = ask(
        url,
        "SELECT uuid::text, first FROM segments WHERE stream_id = %s AND tier <> 'dropped'"
        " ORDER BY first, id LIMIT 1",
        stream_id,
    )
    return Cursor(segment, first - 1)


def numbers(events: list[StoredEvent]) -> list[int]:
    return [one.event.attributes["n"] for one in events]


async def next_group(url: str) -> int:
    """Create a partition for the segments rolled from now on; return its number."""
    [[newest]] = ask(url, "SELECT max(id) FROM event_partitions")
    async with connected(url) as connection, connection.transaction():
        await create_partition(connection, newest + 1)
    ask(url, "UPDATE log_state SET current_partition = %s", newest + 1)
    return int(newest) + 1


async def clean_all(
    connection: Connection, hooks: RetentionHooks = NO_HOOKS, budget: StorageBudget = ENOUGH
) -> int:
    """Clean until nothing is worth it; return how many partitions were dropped."""
    fence, went = Fence(), 0
    while await clean(connection, hooks, budget, fence):
        went += 1
    return went


def partitions(url: str) -> list[str]:
    rows = ask(url, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^events_p'")
    return sorted(row[0] for row in rows)
