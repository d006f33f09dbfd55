"""Runs as rows: who may begin, whose lease it is, what is told."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from eventhub import limits
from eventhub.eventlog.database import blocking
from eventhub.jobs import rows
from eventhub.jobs.job import RunJob, ask_by_timetable
from eventhub.jobs.rows import GONE, Asked, Ending, Heard
from eventhub.jobs.stopping import CANCELLED
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
    assert rows.cancel(connection, first.id)
    jobs.lapse(first.id)
    shown = jobs.find(first.id)
    assert [run.id for run in rows.interrupt_lapsed(connection)] == [first.id]
    noted = jobs.find(first.id)
    assert noted == shown._replace(ended_at_us=noted.ended_at_us), "as it is told before"
    assert (noted.state, noted.reason, noted.detail) == (GONE.state, GONE.reason, GONE.detail)
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


def test_a_run_is_cancelled_before_it_publishes_or_not_at_all(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run = jobs.begun()
    assert rows.publish(connection, run.id)
    assert rows.publish(connection, run.id), "an answer that was lost is asked for again"
    assert not rows.cancel(connection, run.id), "it is too late"
    assert rows.beat(connection, run.id, Heard("at work")) is False
    assert rows.end(connection, run, DONE)
    early = jobs.begun()
    assert rows.cancel(connection, early.id)
    assert not rows.publish(connection, early.id)


def test_who_cancels_while_a_runner_begins_is_always_heard(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    def act(what: Callable[[psycopg.Connection, int], bool], run: int) -> bool:
        with blocking(jobs.world.url, name="test") as own:
            both.wait()
            return what(own, run)

    both = threading.Barrier(2)
    for _ in range(10):
        run = jobs.ask()
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(act, what, run) for what in (rows.begin, rows.cancel)]
            begun, heard = (one.result() for one in asked)
        assert heard
        if not begun:
            assert jobs.find(run).state == "cancelled"
            continue
        assert rows.beat(connection, run, Heard("at work")) is True
        assert rows.end(connection, jobs.find(run), CANCELLED)


def test_the_oldest_results_go_first_and_the_newest_of_each_job_stays(
    jobs: Jobs, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(job: str, size: int) -> int:
        run = rows.ask_running(connection, Asked(job, {}, "tester"))
        assert run is not None
        assert rows.end(connection, jobs.find(run), DONE._replace(result_bytes=size))
        return run

    large = left("audit", 900)
    old, middle, new = (left("backtest", size) for size in (10, 20, 30))
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", 950)
    assert rows.drop_results(connection) == [("backtest", old)]
    assert rows.drop_results(connection) == [], "what is gone is not dropped again"
    assert rows.kept(connection, "backtest") == {old: False, middle: True, new: True}
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", 1)
    assert rows.drop_results(connection) == [("backtest", middle)]
    gone = jobs.find(middle)
    assert (gone.state, gone.figures, gone.result_bytes) == ("completed", {"a": 1}, 20)
    assert not jobs.find(large).result_gone
