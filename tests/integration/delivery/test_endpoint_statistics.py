"""The attempts at endpoints by minute and by hour, as workers count them."""

import asyncio

import psycopg
import pytest

from delivery.callbacks.claims import open_connection
from delivery.callbacks.results import AttemptRecord, DeliveredBatch, DeliveryPart
from delivery.forward.backlog import SQL as BACKLOG_SQL
from delivery.forward.backlog import enforce_bounds
from delivery.forward.bounds import BacklogSettings, bounds_of
from delivery.statistics.counting import OUTCOME_CLASSES, AttemptCounter, forget
from eventhub.base import limits
from eventhub.postgresql.connections import connect
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    answer,
    draining,
    receiver,
    until,
)

TIMES = ("durations", "latencies")


def counts(world: CallbacksWorld, endpoint: int, step_s: int) -> list[int]:
    """Return the attempts at an endpoint in all minutes or hours, by class."""
    sums = ", ".join(f"sum({name})::int" for name in OUTCOME_CLASSES)
    where = "WHERE endpoint_id = %s AND step_s = %s HAVING count(*) > 0"
    rows = world.sql(f"SELECT {sums} FROM endpoint_statistics {where}", endpoint, step_s)
    return list(rows[0]) if rows else []


def timed(world: CallbacksWorld, endpoint: int) -> list[int]:
    """Return how many durations and latencies were counted in hours."""
    return [
        world.one(
            f"SELECT COALESCE(sum(n), 0)::int FROM endpoint_statistics, unnest({name}) AS n"
            " WHERE endpoint_id = %s AND step_s = 3600",
            endpoint,
        )
        for name in TIMES
    ]


async def test_attempts_are_counted_by_outcome_in_minutes_and_hours(world: CallbacksWorld) -> None:
    statuses = iter(["500 Oops", "503 Busy", "404 Gone missing", "302 Elsewhere"])

    def script(_: Posted) -> bytes:
        status = next(statuses, "")
        return answer(status) if status else OK

    async with receiver(script) as sink:
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(20), endpoint)
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 20)
    assert counts(world, endpoint, 60) == [20, 1, 2, 0, 0, 1]
    assert counts(world, endpoint, 3_600) == [20, 1, 2, 0, 0, 1]
    assert timed(world, endpoint) == [24, 20]


async def test_hanging_and_missing_receivers_are_counted_apart(world: CallbacksWorld) -> None:
    async def hang(_: Posted) -> bytes:
        await asyncio.sleep(60)
        return OK

    async with receiver(hang) as sink:
        slow = world.endpoint(sink.url, retry_schedule=[], timeout_s=1)
        away = world.endpoint("http://127.0.0.1:9/", retry_schedule=[])
        for endpoint in (slow, away):
            world.deliver(world.events(1), endpoint)
        async with draining(world):
            await until(lambda: world.states(slow) == world.states(away) == ["dead_lettered"])
    assert counts(world, slow, 60) == [0, 0, 0, 1, 0, 0]
    assert counts(world, away, 60) == [0, 0, 0, 0, 1, 0]
    assert timed(world, slow) == [1, 0]
    longest = world.one(
        "SELECT min(cardinality(durations)) FROM endpoint_statistics WHERE endpoint_id = %s", slow
    )
    assert longest >= 20  # a second or more


async def test_workers_add_to_the_same_minute_while_they_run(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        async with draining(world), draining(world):
            for _ in range(3):
                world.deliver(world.events(100), endpoint)
            await until(lambda: sum(counts(world, endpoint, 3_600)) == 300)
    assert counts(world, endpoint, 60) == [300, 0, 0, 0, 0, 0]
    assert timed(world, endpoint) == [300, 300]


async def test_counts_are_written_once_by_a_worker_that_stops_meanwhile(
    world: CallbacksWorld,
) -> None:
    """The write was interrupted when it had been committed, and was made again at the end."""
    endpoint = world.endpoint("http://127.0.0.1:9/")
    waits = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'eventhub stopping' AND wait_event_type = 'Lock'"
    )
    attempt = AttemptRecord("delivered", 204, 0.0, 5, "http://127.0.0.1:9/", "", "")
    parts = {DeliveryPart(1, endpoint, 1, "token"): (1, 2, 3)}
    counter = AttemptCounter()
    counter.add_delivered([DeliveredBatch(endpoint, parts, attempt, {7.0: 3})])
    async with await open_connection(world.url, "stopping") as connection:
        with psycopg.connect(world.url) as holder:
            holder.execute("LOCK TABLE endpoint_statistics IN EXCLUSIVE MODE")
            writing = asyncio.create_task(counter.write(connection))
            await until(lambda: world.one(waits) == 1)
            writing.cancel()
            await asyncio.wait([writing], timeout=0.2)
            assert not writing.done()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert counter.empty
    assert counts(world, endpoint, 60) == [3, 0, 0, 0, 0, 0]


async def test_a_delivery_that_was_sent_again_has_no_latency(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        async with draining(world):
            world.deliver(world.events(2), endpoint)
            await until(lambda: world.states(endpoint) == ["delivered"] * 2)
            world.sql(
                "UPDATE deliveries SET state = 'pending', resent_at = now(), next_attempt_at ="
                " 'epoch' WHERE endpoint_id = %s",
                endpoint,
            )
            world.sql("SELECT pg_notify('eventhub_deliveries', '')")
            await until(lambda: world.states(endpoint) == ["delivered"] * 2)
    assert timed(world, endpoint) == [4, 2]


async def test_the_largest_backlog_of_a_minute_is_noted(world: CallbacksWorld) -> None:
    endpoint = world.endpoint("http://127.0.0.1:9/")
    connection = await connect(world.url, name="test")

    def pending() -> list[tuple[int, int]]:
        return world.sql(
            "SELECT step_s, max(pending)::int FROM endpoint_statistics WHERE endpoint_id = %s"
            " GROUP BY step_s ORDER BY step_s",
            endpoint,
        )

    async with connection:
        await connection.execute(BACKLOG_SQL["settings"])
        bounds = bounds_of(BacklogSettings(), None)
        await enforce_bounds(connection, bounds)
        assert pending() == []
        for number, largest in ((30, 30), (20, 50), (0, 50)):
            if number:
                world.deliver(world.events(number), endpoint)
            else:
                world.sql("DELETE FROM deliveries")
            await enforce_bounds(connection, bounds)
            assert pending() == [(60, largest), (3_600, largest)]


async def test_what_is_not_shown_any_more_is_deleted(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ENDPOINT_STATISTICS_DELETED_MAX", 7)
    add = (
        "INSERT INTO endpoint_statistics (step_s, starts_at, endpoint_id, delivered)"
        " SELECT %s, now() - n * make_interval(secs => %s), e, 1"
        " FROM generate_series(0, %s) AS n, generate_series(1, 3) AS e"
    )
    shown = {60: limits.ENDPOINT_STATISTICS_MINUTES, 3_600: limits.ENDPOINT_STATISTICS_HOURS}
    for step_s, steps in shown.items():
        world.sql(add, step_s, step_s, steps + 9)
    await forget(world.url)
    left = "SELECT step_s, count(*)::int FROM endpoint_statistics GROUP BY step_s ORDER BY step_s"
    assert world.sql(left) == [(step_s, 3 * steps) for step_s, steps in shown.items()]
