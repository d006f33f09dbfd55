"""One contract for every durability: PostgreSQL with and without waiting for the disk, and a ring
in Redis (EMC-37). Every scenario runs on each.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import psycopg
import pytest

from eventhub.base import errors, limits, metrics
from eventhub.eventlog import backward_cursors, streams, transient
from eventhub.eventlog.drafts import Appended, Draft, DraftProducer
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import AtTime, Start
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.eventlog.streams import StreamPolicy
from tests.integration.eventlog_world import execute, log_database, payload

pytestmark = pytest.mark.req("EMC-37")
database = pytest.fixture(scope="module")(log_database)
TIMEOUT_S = 60.0
REDIS_URL = os.environ["REDIS_URL"]


class Backend(NamedTuple):
    """One durability, with the operations that a test may do to its store."""

    name: str
    log: Log
    other: Log  # of another process
    make: Callable[..., StreamInfo]
    database: str

    def drop_to(self, stream: StreamInfo, sequence: int) -> None:
        """Drop everything up to a sequence, as retention does."""
        if self.name != "transient":
            execute(
                self.database,
                "UPDATE segments SET tier = 'dropped' WHERE stream_id = %s AND last <= %s",
                stream.id,
                sequence,
            )

    async def lose(self, stream: StreamInfo) -> None:
        """Bring the store back without its data."""
        if self.name == "transient":
            transient.erase(REDIS_URL, stream.id)
            return
        execute(self.database, "SELECT roll_segments(ARRAY[%s::bigint], true)", stream.id)
        execute(
            self.database,
            "WITH lost AS (UPDATE heads SET sequence = 0, first = 1, bytes = 0 WHERE stream_id = %s"
            " RETURNING segment_id, stream_id), old AS (UPDATE segments s SET last = 0, first = 1"
            " FROM lost l WHERE s.stream_id = l.stream_id AND s.id <> l.segment_id)"
            " UPDATE segments s SET first = 1 FROM lost l WHERE s.id = l.segment_id",
            stream.id,
        )


@pytest.fixture(params=["sync", "async", "transient"])
async def backend(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Backend]:
    def make(**policy: Any) -> StreamInfo:
        kept = StreamPolicy(durability=request.param, **policy)
        name = os.urandom(6).hex()
        with psycopg.connect(database) as connection:
            made = streams.create_stream(connection, 1, name, kept)
        assert made is not None
        # the Redis of this process had streams of other databases, with the same ids
        transient.erase(REDIS_URL, made.id)
        bounds = (kept.retain_events, kept.retain_bytes)
        return StreamInfo(made.id, 1, name, request.param, False, "accept", *bounds)

    async with (
        Log.open(database_url=database, redis_url=REDIS_URL) as log,
        Log.open(database_url=database, redis_url=REDIS_URL) as other,
    ):
        yield Backend(request.param, log, other, make, database)


def draft(stream: StreamInfo, number: int = 0, **more: Any) -> Draft:
    return Draft(stream.id, 1, payload(number), **more)


def produced(stream: StreamInfo, number: int) -> Draft:
    return draft(stream, number, producer=DraftProducer(1, 1, number))


async def append(log: Log, stream: StreamInfo, count: int) -> list[Appended]:
    return await log.append([draft(stream, number) for number in range(1, count + 1)], stream)


async def take(log: Log, stream: StreamInfo, start: Start, count: int) -> list[StoredEvent]:
    """Return the first events from a start on."""
    taken: list[StoredEvent] = []
    async with asyncio.timeout(TIMEOUT_S), log.follow(stream, start) as follower:
        async for stored in follower:
            taken.append(stored)
            if len(taken) == count:
                break
    return taken


def numbers(taken: list[StoredEvent]) -> list[int]:
    return [stored.sequence for stored in taken]


async def test_numbers_have_no_holes_and_all_readers_of_all_processes_see_one_order(
    backend: Backend,
) -> None:
    stream = backend.make()
    readers = [
        asyncio.create_task(take(log, stream, "oldest", 200))
        for log in (backend.log, backend.other, backend.log)
    ]

    async def write(log: Log, first: int) -> None:
        for number in range(first, first + 50):
            await log.append([draft(stream, number)], stream)

    await asyncio.gather(
        write(backend.log, 0),
        write(backend.other, 100),
        write(backend.log, 200),
        write(backend.other, 300),
    )
    lists = await asyncio.gather(*readers)
    assert numbers(lists[0]) == list(range(1, 201))
    contents = [[stored.event.attributes["n"] for stored in taken] for taken in lists]
    assert contents[0] == contents[1] == contents[2]
    assert len({stored.segment for stored in lists[0]}) == 1


async def test_requests_that_are_stored_together_get_the_positions_of_their_own_events(
    backend: Backend,
) -> None:
    """Some of them with producers' numbers, one of which is a repeat."""
    stream = backend.make()
    await backend.log.append([produced(stream, 7)], stream)
    requests = [
        [produced(stream, 7), draft(stream, 1_000)]
        if n == 25
        else [produced(stream, 100 + n)]
        if n % 10 == 9
        else [draft(stream, n), draft(stream, 100 + n)]
        for n in range(50)
    ]
    answers = await asyncio.gather(*(backend.log.append(one, stream) for one in requests))
    places = [
        (position.sequence, one.payload)
        for request, answer in zip(requests, answers, strict=True)
        for one, position in zip(request, answer, strict=True)
        if not position.duplicate
    ]
    taken = await take(backend.log, stream, "oldest", len(places) + 1)
    assert [(one.sequence, one.payload) for one in taken[1:]] == sorted(places)
    duplicates = [[position.duplicate for position in answer] for answer in answers]
    assert duplicates[25] == [True, False]
    assert not any(map(any, (*duplicates[:25], *duplicates[26:])))
    assert answers[25][0].sequence == 1


async def test_a_reader_resumes_after_its_cursor_and_continues_live(backend: Backend) -> None:
    stream = backend.make()
    places = await append(backend.log, stream, 5)
    cursor = Cursor(places[2].segment, places[2].sequence)
    reading = asyncio.create_task(take(backend.other, stream, cursor, 4))
    await append(backend.log, stream, 2)
    assert numbers(await reading) == [4, 5, 6, 7]


async def test_a_producers_repeat_and_a_repeated_token_are_stored_once(backend: Backend) -> None:
    stream = backend.make()
    first = await backend.log.append([produced(stream, 1), produced(stream, 2)], stream)
    again = await backend.other.append(
        [produced(stream, 2), produced(stream, 3), produced(stream, 3)], stream
    )
    segment = first[1].segment
    assert again[0] == first[1]._replace(duplicate=True, head=Cursor(segment, 3))
    assert [(place.sequence, place.duplicate) for place in again[1:]] == [(3, False), (3, True)]
    one, same = await backend.log.append([draft(stream, token=b"k"), draft(stream)], stream)
    two, twice = await backend.other.append(
        [draft(stream, token=b"k"), draft(stream, token=b"l")], stream
    )
    assert two == one._replace(duplicate=True, head=Cursor(segment, 6))
    assert (same.sequence, twice.sequence) == (5, 6)
    assert numbers(await take(backend.log, stream, "oldest", 6)) == [1, 2, 3, 4, 5, 6]


async def test_below_the_producers_window_a_request_is_refused_whole(backend: Backend) -> None:
    stream = backend.make()
    highest = limits.PRODUCER_WINDOW + 1
    await backend.log.append([produced(stream, highest)], stream)
    with pytest.raises(errors.ProducerWindow) as refused:
        await backend.log.append([draft(stream), produced(stream, 1)], stream)
    assert (refused.value.index, refused.value.details["highest"]) == (1, highest)
    [place] = await append(backend.log, stream, 1)
    assert place.sequence == 2


async def test_a_gap_names_exactly_the_missing_events_and_the_cursor_to_resume_from(
    backend: Backend,
) -> None:
    stream = backend.make(segment_events_max=10, retain_events=30)
    places = await append(backend.log, stream, 100)
    backend.drop_to(stream, 70)
    with pytest.raises(errors.Gone) as gone:
        await take(backend.log, stream, Cursor(places[4].segment, 5), 1)
    said = gone.value.details
    assert said["missed"] == {"first": 6, "last": 70}
    assert said["first_available"]["sequence"] == 71
    assert numbers(await take(backend.log, stream, Cursor(**said["resume"]), 30)) == list(
        range(71, 101)
    )
    assert numbers(await take(backend.log, stream, "oldest", 1)) == [71]


async def test_a_reader_that_falls_behind_gets_the_gap(
    backend: Backend,
) -> None:
    stream = backend.make(segment_events_max=10, retain_events=30)
    await append(backend.log, stream, 20)
    async with backend.other.follow(stream, "oldest") as follower:
        follower.advance_to((await follower.catch_up())[4])  # the fifth
        await append(backend.log, stream, 980)
        backend.drop_to(stream, 970)
        follower.ring.distrust()  # what this process holds in memory would bridge the gap
        with pytest.raises(errors.Gone) as gone:
            await follower.catch_up()
    assert gone.value.details["missed"] == {"first": 6, "last": 970}


async def test_a_cursor_of_another_segment_or_ahead_of_the_stream_is_refused_at_once(
    backend: Backend,
) -> None:
    stream = backend.make()
    [place] = await append(backend.log, stream, 1)
    unknown = Cursor("00000000-0000-4000-8000-000000000000", 1)
    for cursor in (unknown, Cursor(place.segment, 2)):
        with pytest.raises(errors.SegmentMismatch) as refused:
            await take(backend.log, stream, cursor, 1)
        assert refused.value.details["current"] == {
            "segment": place.segment,
            "first": 1,
            "last": 1,
        }


async def test_reassigned_sequences_are_of_a_new_segment_and_old_cursors_get_a_mismatch(
    backend: Backend,
) -> None:
    stream = backend.make()
    [*_, held] = await append(backend.log, stream, 500)
    await backend.lose(stream)
    for log in (backend.log, backend.other):
        log.tail.connected("another life")
    [*_, twentieth] = await append(backend.other, stream, 20)
    assert twentieth.sequence == 20
    assert twentieth.segment != held.segment
    with pytest.raises(errors.SegmentMismatch) as refused:
        await take(backend.log, stream, Cursor(held.segment, held.sequence), 1)
    current = refused.value.details["current"]
    assert current == {"segment": twentieth.segment, "first": 1, "last": 20}
    again = await take(backend.log, stream, Cursor(current["segment"], 19), 1)
    assert again[0].cursor == Cursor(twentieth.segment, 20)


async def test_a_time_resolves_to_the_first_event_of_then_or_later(backend: Backend) -> None:
    stream = backend.make(segment_events_max=3)
    for number in range(8):
        await backend.log.append([draft(stream, number)], stream)
    taken = await take(backend.other, stream, "oldest", 8)
    for expected in taken:
        [first] = await take(backend.log, stream, AtTime(expected.appended_at_us), 1)
        assert first.appended_at_us == expected.appended_at_us
    assert numbers(await take(backend.log, stream, AtTime(0), 1)) == [1]


async def test_many_small_segments_are_read_by_few_queries(database: str) -> None:
    async with Log.open(database_url=database) as log:
        with psycopg.connect(database) as connection:
            policy = StreamPolicy(segment_events_max=1)
            made = streams.create_stream(connection, 1, "small", policy)
            assert made is not None
        stream = StreamInfo(made.id, 1, "small")
        await append(log, stream, 600)
        reads = metrics.RING_READS.labels(tier="database")
        before = reads._value.get()
        assert numbers(await take(log, stream, "oldest", 600)) == list(range(1, 601))
        assert reads._value.get() - before <= 600 // limits.READ_SEGMENTS_MAX + 2
        async with log.follow(stream, "now") as follower:
            low = await backward_cursors.before(log, stream, follower.cursor, 500)
        assert low is not None
        assert low.sequence == 100
        assert numbers(await take(log, stream, low, 500)) == list(range(101, 601))
