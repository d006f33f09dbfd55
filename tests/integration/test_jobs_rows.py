"""Runs as rows: who may begin, whose lease it is, what is told."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from eventhub.eventlog.database import blocking
from eventhub.jobs import rows
from eventhub.jobs.job import RunJob, ask_by_timetable
from eventhub.jobs.rows import GONE, Asked, Ending, Heard
from tests.integration.forward_world import World, world_database
from tests.integration.jobs_world import Jobs

world = pytest.fixture(scope="module")(world_database)
DONE = Ending("completed", verdict="ok", summary="Done.", figures={"a": 1})


@pytest.fixture
def jobs(world: World, tmp_path: Path) -> Iterator[Jobs]:
    yield Jobs(world, tmp_path)
    world.sql("DELETE FROM job_runs")


@pytest.fixture
def connection(world: World) -> Iterator[psycopg.Connection]:
    with blocking(world.url, name="test") as found:
        yield found


def test_of_many_runners_one_begins(jobs: Jobs) -> None:
    runs = [jobs.ask() for _ in range(8)]

    def begin(run: int) -> bool:
        with blocking(jobs.world.url, name="test") as own:
            return rows.begin(own, run)

    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(begin, runs))
    assert sum(begun) == 1
    [running] = [run for run, ours in zip(runs, begun, strict=True) if ours]
    assert jobs.find(running).state == "running"


def test_the_next_run_begins_when_the_lease_has_run_out(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    first, second = jobs.begun(), jobs.ask()
    assert rows.beat(connection, first.id, Heard("at work", 5)) is False
    assert (jobs.find(first.id).phase, jobs.find(first.id).rows_done) == ("at work", 5)
    assert rows.interrupt_lapsed(connection) == []
    assert rows.waiting(connection) == []
    assert not rows.begin(connection, second)
    jobs.lapse(first.id)
    assert [run.id for run in rows.interrupt_lapsed(connection)] == [first.id]
    assert (jobs.find(first.id).state, jobs.find(first.id).detail) == (GONE.state, GONE.detail)
    assert rows.waiting(connection) == [second]
    assert rows.begin(connection, second)
    assert rows.beat(connection, first.id, Heard("at work")) is None, "it is not its own any more"
    assert not rows.end(connection, first, DONE)
    assert jobs.find(first.id).state == "interrupted"


def test_a_runner_that_wakes_up_in_time_keeps_its_run(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run = jobs.begun()
    jobs.lapse(run.id)
    assert rows.beat(connection, run.id, Heard("at work")) is False
    assert not rows.end(connection, run, GONE, lapsed=True), "its runner is there again"
    assert rows.end(connection, run, DONE)
    found = jobs.find(run.id)
    assert (found.state, found.figures, found.phase) == ("completed", {"a": 1}, "")


def test_who_cancels_is_heard_with_the_next_beat(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run, waiting = jobs.begun(), jobs.ask()
    assert rows.cancel(connection, run.id)
    assert jobs.find(run.id).phase == "being cancelled"
    assert rows.beat(connection, run.id, Heard("at work")) is True
    assert rows.cancel(connection, waiting)
    assert jobs.find(waiting).state == "cancelled"
    assert not rows.cancel(connection, waiting), "it is over"


def test_the_timetable_asks_unless_a_run_waits(jobs: Jobs, connection: psycopg.Connection) -> None:
    for _ in range(2):
        ask_by_timetable(jobs.world.url, "audit")
    [run] = rows.history(connection, "audit", None, 10)
    assert (run.state, run.asked_by, run.params) == ("waiting", "timetable", {})
    assert rows.begin(connection, run.id)
    ask_by_timetable(jobs.world.url, "audit")
    assert [one.state for one in rows.history(connection, "audit", None, 10)] == [
        "waiting",
        "running",
    ]


def test_a_filter_is_kept_as_it_was_written(jobs: Jobs, connection: psycopg.Connection) -> None:
    params = {"filter": {"b": "\0", "a": [1, 1.0, "x", 2**63]}, "since_us": 1}
    run = rows.ask(connection, Asked("backtest", params, "tester"))
    kept = jobs.find(run).params
    assert kept == params
    assert list(kept["filter"]) == ["b", "a"]


def test_a_database_that_is_away_is_no_error() -> None:
    away = "postgresql://127.0.0.1:1/none"
    RunJob().run(away)
    ask_by_timetable(away, "audit")
