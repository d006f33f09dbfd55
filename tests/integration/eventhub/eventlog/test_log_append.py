"""The append: producer windows, refusals in a batch, callers' transactions, and many writers."""

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from eventhub.base import errors, limits
from eventhub.eventlog.append import append_batch, append_in
from eventhub.eventlog.drafts import Appended, AppendedBatch, Draft, Outcome, Request
from eventhub.eventlog.stored import Cursor
from tests.databases import WAITING
from tests.integration.eventlog_world import (
    append_now,
    draft,
    log_database,
    new_stream,
    payload,
    produced,
    segments,
    stored,
)

database = pytest.fixture(scope="module")(log_database)
WINDOW = limits.PRODUCER_WINDOW
WRITERS = 6
STREAMS = 5


async def group(url: str, *requests: Request) -> AppendedBatch:
    """Append requests in one group commit."""
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    async with connection:
        return await append_batch(connection, list(requests))


def places(outcome: Outcome) -> list[tuple[int, bool]]:
    assert isinstance(outcome, list), outcome
    return [(place.sequence, place.duplicate) for place in outcome]


def sequences(appended: list[Appended]) -> list[int]:
    return [place.sequence for place in appended]


async def test_a_number_in_the_window_is_a_duplicate_with_its_position_or_appended(
    database: str,
) -> None:
    stream = new_stream(database, segment_events_max=2)
    first = append_now(database, *(produced(stream, n) for n in (1, 2, 5, 9)))
    again = append_now(database, *(produced(stream, n) for n in (5, 3, 9, 3)))
    assert [(p.sequence, p.duplicate) for p in again] == [
        (3, True),
        (5, False),
        (4, True),
        (5, True),
    ]
    assert again[0].segment == first[2].segment
    assert again[1].segment == again[3].segment != first[2].segment


async def test_below_the_window_a_request_is_refused_and_the_others_of_its_batch_are_stored(
    database: str,
) -> None:
    stream = new_stream(database)
    append_now(database, produced(stream, WINDOW + 10))
    bad = [draft(stream, 1), produced(stream, WINDOW + 11), produced(stream, 10), draft(stream, 2)]
    batch = await group(database, [draft(stream, 3)], bad, [produced(stream, 11), draft(stream, 4)])
    before, refused, after = batch.outcomes
    assert places(before) == [(2, False)]
    assert isinstance(refused, errors.ProducerWindow)
    assert refused.position == {"index": 2, "field": "id.sequence"}
    assert refused.details == {"highest": WINDOW + 11}
    assert places(after) == [(3, False), (4, False)]
    with psycopg.connect(database) as connection:
        payloads = [data for _, data in stored(connection, stream)[1:]]
    assert payloads == [payload(3), payload(11), payload(4)]
    assert append_now(database, produced(stream, WINDOW + 11))[0].duplicate is False


async def test_a_window_moved_only_by_a_refused_request_refuses_no_other(database: str) -> None:
    """Both requests were once refused, the second with a `highest` that was never stored."""
    stream = new_stream(database)
    append_now(database, produced(stream, 60))
    moves = [produced(stream, 50_000), produced(stream, 1)]
    late = [produced(stream, 50_000, incarnation=2), produced(stream, 2, incarnation=2)]
    batch = await group(database, moves, [produced(stream, 61)], late, [produced(stream, 62)])
    refused, one, refused_too, two = batch.outcomes
    assert isinstance(refused, errors.ProducerWindow)
    assert isinstance(refused_too, errors.ProducerWindow)
    assert (places(one), places(two)) == ([(2, False)], [(3, False)])


async def test_requests_of_a_batch_that_share_a_number_store_it_once_even_if_one_is_refused(
    database: str,
) -> None:
    stream = new_stream(database)
    append_now(database, produced(stream, WINDOW + 10))
    seven, bad = produced(stream, WINDOW + 7), produced(stream, 3)
    batch = await group(database, [seven, bad], [seven], [seven])
    assert isinstance(batch.outcomes[0], errors.ProducerWindow)
    assert [places(outcome) for outcome in batch.outcomes[1:]] == [[(2, False)], [(2, True)]]


async def test_a_new_incarnation_and_another_client_have_their_own_windows(database: str) -> None:
    stream = new_stream(database)
    append_now(database, produced(stream, 1), produced(stream, 3 * WINDOW))
    fresh = append_now(database, produced(stream, 1, incarnation=2), produced(stream, 1, client=2))
    assert [(place.sequence, place.duplicate) for place in fresh] == [(3, False), (4, False)]
    with pytest.raises(errors.ProducerWindow):
        append_now(database, produced(stream, 2))
    [again] = append_now(database, produced(stream, 1, incarnation=2))
    assert again == fresh[0]._replace(duplicate=True, head=Cursor(fresh[0].segment, 4))


async def test_slots_are_reused_after_a_window_of_numbers(database: str) -> None:
    stream = new_stream(database)
    for start in range(1, 2 * WINDOW + 1, 1_024):
        append_now(database, *(produced(stream, n) for n in range(start, start + 1_024)))
    with psycopg.connect(database) as connection:
        query = "SELECT count(*), min(number) FROM producer_numbers WHERE stream_id = %s"
        assert connection.execute(query, (stream,)).fetchone() == (WINDOW, WINDOW + 1)
    [oldest] = append_now(database, produced(stream, WINDOW + 1))
    assert (oldest.sequence, oldest.duplicate) == (WINDOW + 1, True)
    with pytest.raises(errors.ProducerWindow):
        append_now(database, produced(stream, WINDOW))


async def test_an_unknown_stream_refuses_its_request_and_names_the_event(database: str) -> None:
    stream = new_stream(database)
    batch = await group(
        database, [draft(stream)], [draft(stream), draft(999_999)], [draft(999_998)], []
    )
    first, second, third, empty = batch.outcomes
    assert places(first) == [(1, False)]
    assert isinstance(second, errors.UnknownStream)
    assert isinstance(third, errors.UnknownStream)
    assert (second.index, third.index) == (1, 0)
    assert empty == []
    with psycopg.connect(database) as connection:
        assert len(stored(connection, stream)) == 1


def test_append_in_rolls_back_and_commits_with_its_caller(database: str) -> None:
    stream = new_stream(database, segment_events_max=3)
    with psycopg.connect(database) as connection:
        with pytest.raises(RuntimeError, match="transaction"):
            append_in(connection, [draft(stream)])
        with connection.transaction(force_rollback=True):
            connection.execute("CREATE TABLE made_by_caller (n integer)")
            lost = append_in(connection, [produced(stream, n) for n in range(1, 8)])
            assert sequences(lost) == list(range(1, 8))
        assert stored(connection, stream) == []
        assert segments(connection, stream) == [(1, None, None)]
        connection.rollback()
        with connection.transaction():
            kept = append_in(connection, [produced(stream, n) for n in range(1, 5)])
        assert [(place.sequence, place.duplicate) for place in kept] == [
            (n, False) for n in range(1, 5)
        ]
        assert [number for number, _ in stored(connection, stream)] == [1, 2, 3, 4]
        assert connection.execute("SELECT to_regclass('made_by_caller')").fetchone() == (None,)


def test_append_in_raises_the_refusal_and_leaves_the_transaction_usable(database: str) -> None:
    stream = new_stream(database)
    append_now(database, produced(stream, 2 * WINDOW))
    with psycopg.connect(database) as connection, connection.transaction():
        connection.execute("SELECT 1")
        with pytest.raises(errors.ProducerWindow):
            append_in(connection, [draft(stream), produced(stream, 1)])
        with pytest.raises(errors.UnknownStream):
            append_in(connection, [draft(stream), draft(999_999)])
        assert sequences(append_in(connection, [draft(stream)])) == [2]


def test_a_waiting_append_sees_the_commit_of_the_previous_one(database: str) -> None:
    stream = new_stream(database, segment_events_max=2)
    with (
        psycopg.connect(database) as first,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(database, autocommit=True) as watch,
    ):
        first.execute("SELECT 1")
        mine = append_in(first, [produced(stream, n) for n in (1, 2, 3)])
        waiting = pool.submit(append_now, database, produced(stream, 3), produced(stream, 4))
        while not watch.execute(WAITING).fetchall():
            assert not waiting.done(), "the second append did not wait for the head"
        first.commit()
        theirs = waiting.result()
    assert [(p.sequence, p.duplicate) for p in theirs] == [(3, True), (4, False)]
    assert theirs[0].segment == mine[2].segment


def test_writers_of_several_streams_in_any_order_never_deadlock_and_leave_no_hole(
    database: str,
) -> None:
    ids = [new_stream(database, segment_events_max=7) for _ in range(STREAMS)]
    given: dict[int, list[int]] = {stream: [] for stream in ids}
    lock = threading.Lock()

    def write(writer: int) -> None:
        chance = random.Random(writer)
        with psycopg.connect(database) as connection:
            for turn in range(40):
                drafts = [_random_draft(chance, ids, writer, turn * 10 + n) for n in range(8)]
                with connection.transaction():
                    connection.execute("SELECT 1")
                    places = append_in(connection, drafts)
                with lock:
                    for place in places:
                        assert not place.duplicate
                        given[place.stream_id].append(place.sequence)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    with psycopg.connect(database) as connection:
        for stream in ids:
            count = len(given[stream])
            assert sorted(given[stream]) == list(range(1, count + 1))
            assert [n for n, _ in stored(connection, stream)] == list(range(1, count + 1))
            assert len(segments(connection, stream)) == count // 7 + 1


def _random_draft(chance: random.Random, ids: list[int], writer: int, number: int) -> Draft:
    return produced(chance.choice(ids), number + 1, client=writer)


async def test_one_producer_number_through_many_connections_at_once_is_stored_once(
    database: str,
) -> None:
    stream = new_stream(database)
    for number in range(1, 21):
        batches = await asyncio.gather(
            *(group(database, [produced(stream, number)]) for _ in range(6))
        )
        appended = [places(batch.outcomes[0])[0] for batch in batches]
        assert sorted(appended) == [(number, False)] + [(number, True)] * 5
