"""Keyed state: exact at the head, also after the events behind it were dropped; frequent changes do
not grow the table.
"""

from collections.abc import AsyncIterator

import psycopg
import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.keyed_state import StatePage, read_state
from eventhub.eventlog.retention.drop import drop_by_policy
from eventhub.postgresql.connections import Connection
from tests.integration.eventlog_world import append_now, log_database, new_stream
from tests.integration.retention_world import NO_HOOKS, NOW_US, ask, connected, tiers

url = pytest.fixture(scope="module")(log_database)
BODY = b"x" * 1_200


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connected(url) as made:
        yield made


def put(stream_id: int, key: str, number: int, *, tombstone: bool = False) -> Draft:
    event = Event("d", "t", {"n": number}, body=BODY, content_type="x/y", key=key)
    return Draft(stream_id, 1, encode(event), key=key, tombstone=tombstone)


async def state(connection: Connection, stream_id: int) -> dict[str, tuple[int, int]]:
    """Return, by key, the sequence and the number in its event."""
    found: dict[str, tuple[int, int]] = {}
    page = StatePage(b"", 1 << 40, 3)
    while keys := await read_state(connection, stream_id, page):
        for each in keys:
            found[each.key] = (each.stored.sequence, each.stored.event.attributes["n"])
        page = page._replace(after=keys[-1].digest)
    return found


async def test_of_several_events_of_a_key_in_one_batch_the_last_counts_and_a_tombstone_ends_it(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, keyed=True)
    append_now(url, put(stream, "a", 1), put(stream, "b", 2), put(stream, "a", 3))
    append_now(url, put(stream, "c", 4), put(stream, "b", 5, tombstone=True))
    assert await state(connection, stream) == {"a": (3, 3), "c": (4, 4)}
    append_now(url, put(stream, "c", 6, tombstone=True), put(stream, "c", 7))
    assert await state(connection, stream) == {"a": (3, 3), "c": (7, 7)}


async def test_the_state_outlives_the_segments_of_its_events(
    url: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STATE_COPY_KEYS_MAX", 3)  # several statements for a segment
    stream = new_stream(url, keyed=True, segment_events_max=10, retain_events=10)
    for number in range(1, 51):
        append_now(url, put(stream, f"key {number % 25}", number))
    append_now(url, *(put(stream, "late", number) for number in range(51, 91)))
    before = await state(connection, stream)
    assert len(before) == 26
    assert await drop_by_policy(connection, NO_HOOKS, NOW_US)
    assert tiers(url, stream).count("dropped") >= 7
    assert await state(connection, stream) == before
    append_now(url, put(stream, "key 7", 91))
    assert await state(connection, stream) == {**before, "key 7": (91, 91)}


def test_frequent_changes_do_not_grow_the_table(url: str) -> None:
    """500 keys of 1.2 KB, each put forty times, without VACUUM."""
    stream = new_stream(url, keyed=True)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("ALTER TABLE keyed_state SET (autovacuum_enabled = false)")
    for round_number in range(40):
        append_now(url, *(put(stream, f"k{key}", round_number) for key in range(500)))
    [[size]] = ask(url, "SELECT pg_total_relation_size('keyed_state')")
    assert size < 1_000_000
