"""Drops by policy, with the time as an argument, and their announcements."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from eventhub.eventlog.retention.drop import RetentionHooks, drop_by_policy, drop_oldest, roll_due
from eventhub.postgresql.connections import Connection
from tests.integration.eventlog_world import execute, log_database, new_stream, segments
from tests.integration.retention_world import (
    NOW_US,
    announced,
    ask,
    connected,
    fill,
    numbers,
    oldest,
    read_all,
    tiers,
)

url = pytest.fixture(log_database)
UNBOUNDED = 1 << 62


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connected(url) as opened:
        yield opened


async def drop(connection: Connection, now_us: int = NOW_US, **needed: int) -> None:
    async def needs(_connection: Connection) -> dict[int, int]:
        return {int(name[1:]): lowest for name, lowest in needed.items()}

    await drop_by_policy(connection, RetentionHooks(needs=needs), now_us)


async def test_whole_segments_are_dropped_and_at_least_the_retained_events_stay(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, segment_events_max=100, retain_events=1000)
    fill(url, stream, 1, 2000)
    await drop(connection)
    assert oldest(url, stream).sequence + 1 == 1001
    fill(url, stream, 2001, 2050)
    await drop(connection)
    assert oldest(url, stream).sequence + 1 == 1001  # 1050 are kept: without a segment, only 950
    fill(url, stream, 2051, 2100)
    await drop(connection)
    assert oldest(url, stream).sequence + 1 == 1101
    assert ask(url, "SELECT DISTINCT removal_reason FROM segments WHERE tier = 'dropped'") == [
        ("count",)
    ]
    [first, second] = announced(url, "stream.trimmed")
    assert (first["first"], first["segments"], first["events"], first["reason"]) == (
        (1001, 10, 1000, "count")
    )
    assert second["events"] == 100
    assert first["bytes"] == sum(row[2] or 0 for row in _segments(url, stream)[:10])


def _segments(url: str, stream: int) -> list[tuple[int, int | None, int | None]]:
    with psycopg.connect(url) as connection:
        return segments(connection, stream)


async def test_the_ring_is_bounded_by_bytes_too(url: str, connection: Connection) -> None:
    stream = new_stream(url, segment_events_max=10, retain_bytes=25_000)
    fill(url, stream, 1, 100, size=1000)
    await drop(connection)
    left = [row for row in _segments(url, stream) if row[0] > oldest(url, stream).sequence]
    kept = sum(row[2] or 0 for row in left)
    assert 25_000 <= kept < 25_000 + (left[0][2] or 0)


async def test_age_is_counted_from_the_seal(url: str, connection: Connection) -> None:
    stream = new_stream(url, segment_events_max=10, retain_age_s=3600)
    fill(url, stream, 1, 25)
    execute(url, "UPDATE segments SET sealed_at = to_timestamp(%s) WHERE first = 1"
                 " AND stream_id = %s", NOW_US / 1e6 - 3601, stream)  # fmt: skip
    execute(url, "UPDATE segments SET sealed_at = to_timestamp(%s) WHERE first = 11"
                 " AND stream_id = %s", NOW_US / 1e6 - 3599, stream)  # fmt: skip
    await drop(connection)
    assert tiers(url, stream) == ["dropped", "live", "live"]
    await drop(connection, NOW_US + 2_000_000)
    assert tiers(url, stream) == ["dropped", "dropped", "live"]


async def test_an_open_segment_is_sealed_by_its_age_and_an_empty_one_never(
    url: str, connection: Connection
) -> None:
    audit = new_stream(url, segment_age_s_max=3600)
    idle = new_stream(url, segment_age_s_max=3600)
    short = new_stream(url, retain_age_s=60)
    fill(url, audit, 1, 3)
    fill(url, short, 1, 3)
    [[opened_us]] = ask(
        url, "SELECT (extract(epoch FROM max(opened_at)) * 1000000)::bigint FROM segments"
    )
    assert await roll_due(connection, opened_us + 30_000_000, UNBOUNDED) == 0
    assert await roll_due(connection, opened_us + 61_000_000, UNBOUNDED) == 1  # `short`
    assert await roll_due(connection, opened_us + 3_660_000_000, UNBOUNDED) == 1  # `audit`
    assert [(row[0], row[1]) for row in _segments(url, audit)] == [(1, 3), (4, None)]
    assert [(row[0], row[1]) for row in _segments(url, idle)] == [(1, None)]
    fill(url, audit, 4, 5)
    assert numbers(await read_all(connection, audit, oldest(url, audit))) == [1, 2, 3, 4, 5]


async def test_a_segment_too_large_for_a_partition_is_sealed(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url)
    fill(url, stream, 1, 50, size=1000)
    assert await roll_due(connection, 0, 100_000) == 0
    assert await roll_due(connection, 0, 50_000) == 1


async def test_segments_needed_by_a_durable_cursor_stay_unless_on_lag_is_drop(
    url: str, connection: Connection
) -> None:
    keeps = new_stream(url, segment_events_max=10, retain_events=10)
    drops = new_stream(url, segment_events_max=10, retain_events=10)
    execute(url, "UPDATE streams SET on_lag = 'drop' WHERE id = %s", drops)
    for stream in (keeps, drops):
        fill(url, stream, 1, 50)
    await drop(connection, **{f"s{keeps}": 15, f"s{drops}": 15})
    assert oldest(url, keeps).sequence + 1 == 11  # the segment of 11 to 20 is needed from 15 on
    assert oldest(url, drops).sequence + 1 == 41
    await drop(connection, **{f"s{keeps}": 51})
    assert oldest(url, keeps).sequence + 1 == 41


async def test_a_hold_takes_precedence_over_policy_and_quota(
    url: str, connection: Connection
) -> None:
    held = new_stream(url, segment_events_max=10, retain_events=10)
    free = new_stream(url, segment_events_max=10)
    execute(url, "UPDATE streams SET hold = 'case 7' WHERE id = %s", held)
    for stream in (held, free):
        fill(url, stream, 1, 30)
    await drop(connection)
    await drop_oldest(connection, RetentionHooks(), NOW_US, stored_bytes=1 << 40, reason="quota")
    assert tiers(url, held) == ["live"] * 4
    assert tiers(url, free) == ["dropped"] * 3 + ["live"]


async def test_an_archive_stream_drops_segments_only_once_archived_and_readable(
    url: str, connection: Connection
) -> None:
    stream = new_stream(url, segment_events_max=10, retain_events=10)
    execute(url, "UPDATE streams SET archive = true WHERE id = %s", stream)
    fill(url, stream, 1, 30)
    await drop(connection)
    await drop_oldest(connection, RetentionHooks(), NOW_US, stored_bytes=1 << 40, reason="quota")
    assert tiers(url, stream) == ["live"] * 4
    execute(
        url, "UPDATE segments SET archive_path = 'a' WHERE stream_id = %s AND first = 1", stream
    )
    await drop(connection)
    assert tiers(url, stream) == ["archived", "live", "live", "live"]
    assert announced(url, "stream.trimmed") == []  # nothing is lost for readers


async def test_for_space_the_oldest_segments_of_all_streams_are_dropped_and_system_last(
    url: str, connection: Connection
) -> None:
    one, two = (new_stream(url, segment_events_max=10) for _ in range(2))
    for turn in range(3):
        for stream in (one, two):
            fill(url, stream, turn * 10 + 1, turn * 10 + 10, size=1000)
    [[size]] = ask(url, "SELECT bytes FROM segments WHERE stream_id = %s AND first = 1", one)
    dropped = await drop_oldest(
        connection, RetentionHooks(), NOW_US, stored_bytes=size * 3, reason="quota"
    )
    assert sum(each.segments for each in dropped) in (3, 4)
    assert tiers(url, one)[0] == tiers(url, two)[0] == "dropped"
    assert tiers(url, two)[2] == "live"
    assert {one["reason"] for one in announced(url, "stream.trimmed")} == {"quota"}
