"""Runs as rows: who may begin, whose lease it is, what is told."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import signals

from eventhub.base import limits
from eventhub.celery import app
from eventhub.postgresql.connections import blocking
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import CANCELLED
from sparkjobs.runs.rows import LOST, Ending, RunProgress, RunRequest
from sparkjobs.runs.task import RunJob, request_scheduled_run
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
            return rows.start(own, run)

    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(begin, runs))
    assert sum(begun) == 1
    [running] = [run for run, ours in zip(runs, begun, strict=True) if ours]
    assert jobs.find(running).state == "running"


def test_the_next_run_begins_when_the_lease_has_run_out(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    first, second = jobs.begun(), jobs.ask()
    assert rows.heartbeat(connection, first.id, RunProgress("at work", 5)) is False
    assert (jobs.find(first.id).phase, jobs.find(first.id).rows_done) == ("at work", 5)
    assert rows.interrupt_lapsed(connection) == []
    assert rows.waiting(connection) == []
    assert not rows.start(connection, second)
    assert rows.cancel(connection, first.id)
    jobs.lapse(first.id)
    shown = jobs.find(first.id)
    assert [run.id for run in rows.interrupt_lapsed(connection)] == [first.id]
    noted = jobs.find(first.id)
    assert noted == shown._replace(ended_at=noted.ended_at), "as it is told before"
    assert (noted.state, noted.reason, noted.detail) == (LOST.state, LOST.reason, LOST.detail)
    assert rows.waiting(connection) == [second]
    assert rows.start(connection, second)
    assert rows.heartbeat(connection, first.id, RunProgress("at work")) is None, (
        "it is not its own any more"
    )
    assert not rows.end(connection, first, DONE)
    assert jobs.find(first.id).state == "interrupted"


def test_a_runner_that_wakes_up_in_time_keeps_its_run(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run = jobs.begun()
    jobs.lapse(run.id)
    assert rows.heartbeat(connection, run.id, RunProgress("at work")) is False
    assert not rows.end(connection, run, LOST, lapsed=True), "its runner is there again"
    assert rows.end(connection, run, DONE)
    found = jobs.find(run.id)
    assert (found.state, found.figures, found.phase) == ("completed", {"a": 1}, "")


def test_who_cancels_is_heard_with_the_next_beat(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run, waiting = jobs.begun(), jobs.ask()
    assert rows.cancel(connection, run.id)
    assert jobs.find(run.id).phase == "being cancelled"
    assert rows.heartbeat(connection, run.id, RunProgress("at work")) is True
    assert rows.cancel(connection, waiting)
    assert jobs.find(waiting).state == "cancelled"
    assert not rows.cancel(connection, waiting), "it is over"


def test_the_timetable_asks_unless_a_run_waits(jobs: Jobs, connection: psycopg.Connection) -> None:
    for _ in range(2):
        request_scheduled_run(jobs.world.url, "audit")
    [run] = jobs.runs(job="audit")
    assert (run.state, run.requested_by, run.params) == ("waiting", "timetable", {})
    assert rows.start(connection, run.id)
    request_scheduled_run(jobs.world.url, "audit")
    assert [one.state for one in jobs.runs(job="audit")] == ["waiting", "running"]


def test_a_run_of_the_timetable_that_may_succeed_later_is_repeated_the_same_night(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    """Three audits in a row were lost to a machine that was busy for a quarter of a minute."""
    slow = Ending("failed", "java_slow", "Java did not say its version in time.")
    first = rows.request_scheduled(connection, "audit")
    run, pauses = first, []
    for attempt in range(1, limits.JOB_ATTEMPTS_MAX + 1):
        assert run is not None
        assert rows.start(connection, run)
        began = jobs.find(run)
        assert (began.attempt, began.requested_by) == (attempt, "timetable")
        assert began.repeats == (None if attempt == 1 else first)
        assert rows.end(connection, began, slow)
        assert rows.request_scheduled(connection, "audit") is None or attempt == 5
        repeats = jobs.repeats()
        if attempt == limits.JOB_ATTEMPTS_MAX:
            assert repeats == []
            break
        [repeat] = repeats
        ended = jobs.find(run)
        assert (ended.state, ended.reason) == ("failed", "java_slow")
        pauses.append((repeat.not_before - ended.ended_at) / timedelta(minutes=1))
        assert rows.waiting(connection) == [], "not yet"
        jobs.world.sql("UPDATE job_runs SET not_before = now() WHERE id = %s", repeat.id)
        assert rows.waiting(connection) == [repeat.id]
        run = repeat.id
    assert pauses == [5, 15, 45, 135]


@pytest.mark.parametrize(
    ("requested_by", "ending"),
    [
        ("timetable", Ending("failed", "no_java", "There is no Java.")),
        ("timetable", CANCELLED),
        ("timetable", DONE),
        ("tester", Ending("failed", "java_slow", "Java did not answer.")),
    ],
)
def test_what_will_not_pass_and_what_people_asked_for_is_not_repeated(
    jobs: Jobs, connection: psycopg.Connection, requested_by: str, ending: Ending
) -> None:
    run = rows.start_now(connection, RunRequest("audit", {}, requested_by))
    assert run is not None
    assert rows.end(connection, jobs.find(run), ending)
    assert len(jobs.runs(job="audit")) == 1


def test_a_night_ends(jobs: Jobs, connection: psycopg.Connection) -> None:
    """A run that is interrupted by day waits for the next night. A repeat may be cancelled, and
    keeps nobody's own run of the job waiting.
    """
    run = rows.start_now(connection, RunRequest("audit", {}, "timetable"))
    assert run is not None
    jobs.world.sql("UPDATE job_runs SET requested_at = now() - interval '356 minutes'")
    jobs.lapse(run)
    assert [one.id for one in rows.interrupt_lapsed(connection)] == [run]
    assert jobs.repeats() == []
    run = rows.start_now(connection, RunRequest("audit", {}, "timetable"))
    assert run is not None
    jobs.lapse(run)
    rows.interrupt_lapsed(connection)
    [repeat] = jobs.repeats()
    own = rows.request(connection, RunRequest("audit", {}, "tester"))
    assert rows.waiting(connection) == [own]
    assert rows.cancel(connection, repeat.id)
    assert jobs.repeats() == []


def test_a_clock_that_was_set_back_keeps_no_run_from_its_end_or_its_begin(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    """An hour back: the lease of a runner that has gone ran an hour longer, and a repeat waited so
    much longer. One that is there keeps its run.
    """
    gone, alive = jobs.begun(), rows.start_now(connection, RunRequest("audit", {}, "timetable"))
    assert alive is not None
    jobs.world.sql("UPDATE job_runs SET lease_expires_at = lease_expires_at + interval '1 hour'")
    assert rows.interrupt_lapsed(connection) == [], "nobody knows yet whether they are there"
    lease = "SELECT max(lease_expires_at) <= now() + make_interval(secs => %s) FROM job_runs"
    assert jobs.world.sql(lease, limits.JOB_LEASE_S) == [(True,)]
    jobs.lapse(gone.id)
    assert rows.heartbeat(connection, alive, RunProgress("at work")) is False
    assert [run.id for run in rows.interrupt_lapsed(connection)] == [gone.id]
    assert rows.end(connection, jobs.find(alive), Ending("failed", "spark"))
    [repeat] = jobs.repeats()
    assert rows.waiting(connection) == []
    jobs.world.sql("UPDATE job_runs SET not_before = not_before + interval '3 hours'")
    assert rows.waiting(connection) == [repeat.id]


def test_a_filter_is_kept_as_it_was_written(jobs: Jobs, connection: psycopg.Connection) -> None:
    params = {"filter": {"b": "\0", "a": [1, 1.0, "x", 2**63]}, "since_us": 1}
    run = rows.request(connection, RunRequest("backtest", params, "tester"))
    kept = jobs.find(run).params
    assert kept == params
    assert list(kept["filter"]) == ["b", "a"]


def test_a_database_that_is_away_is_no_error_and_the_timetable_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A night's run was never asked for if the database was away at its minute."""
    away = "postgresql://127.0.0.1:1/none"
    RunJob().run(away)
    monkeypatch.setenv("DATABASE_DIRECT_URL", away)
    retries: list[Any] = []
    signals.task_retry.connect(lambda reason, **_: retries.append(reason), weak=False)
    result = app.tasks["jobs.ask"].apply(("audit",))
    assert result.state == "FAILURE", "of the last try"
    assert len(retries) == limits.JOB_REQUEST_RETRIES_MAX
    assert {retry.when for retry in retries} == {limits.JOB_REQUEST_RETRY_PAUSE_S}


def test_a_run_is_cancelled_before_it_publishes_or_not_at_all(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run = jobs.begun()
    assert rows.publish(connection, run.id)
    assert rows.publish(connection, run.id), "an answer that was lost is asked for again"
    assert not rows.cancel(connection, run.id), "it is too late"
    assert rows.heartbeat(connection, run.id, RunProgress("at work")) is False
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
            asked = [pool.submit(act, what, run) for what in (rows.start, rows.cancel)]
            begun, heard = (one.result() for one in asked)
        assert heard
        if not begun:
            assert jobs.find(run).state == "cancelled"
            continue
        assert rows.heartbeat(connection, run, RunProgress("at work")) is True
        assert rows.end(connection, jobs.find(run), CANCELLED)


def test_the_oldest_results_go_first_and_the_newest_of_each_job_stays(
    jobs: Jobs, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(job: str, size: int) -> int:
        run = rows.start_now(connection, RunRequest(job, {}, "tester"))
        assert run is not None
        assert rows.end(connection, jobs.find(run), DONE._replace(result_bytes=size))
        return run

    large = left("audit", 900)
    old, middle, new = (left("backtest", size) for size in (10, 20, 30))
    back = "UPDATE job_runs SET ended_at = ended_at + interval '1 hour' WHERE id = ANY (%s)"
    jobs.world.sql(back, [old, middle])  # then the clock was set back
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", 950)
    assert rows.drop_results(connection) == [("backtest", old)]
    assert rows.drop_results(connection) == [], "what is gone is not dropped again"
    assert rows.delete_old_runs(connection, "backtest") == {old: False, middle: True, new: True}
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", 1)
    assert rows.drop_results(connection) == [("backtest", middle)]
    gone = jobs.find(middle)
    assert (gone.state, gone.figures, gone.result_bytes) == ("completed", {"a": 1}, 20)
    assert not jobs.find(large).result_gone
