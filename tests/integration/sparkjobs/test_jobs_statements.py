"""The rows of runs: starts, leases, cancellations, retries, announcements."""

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
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import CANCELLED
from sparkjobs.runs.statements import LOST, Ending, RunProgress, RunRequest
from sparkjobs.runs.task import RunPerformer, request_scheduled_run
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


def test_one_of_many_runners_starts(jobs: Jobs) -> None:
    runs = [jobs.request() for _ in range(8)]

    def start(run: int) -> bool:
        with blocking(jobs.world.url, name="test") as own:
            return statements.start(own, run)

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(start, runs))
    assert sum(started) == 1
    [running] = [run for run, ours in zip(runs, started, strict=True) if ours]
    assert jobs.find(running).state == "running"


def test_the_next_run_starts_when_the_lease_has_expired(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    first, second = jobs.start(), jobs.request()
    assert statements.heartbeat(connection, first.id, RunProgress("working", 5)) is False
    assert (jobs.find(first.id).phase, jobs.find(first.id).rows_done) == ("working", 5)
    assert statements.interrupt_lapsed(connection) == []
    assert statements.waiting(connection) == []
    assert not statements.start(connection, second)
    assert statements.cancel(connection, first.id)
    jobs.lapse(first.id)
    shown = jobs.find(first.id)
    assert [run.id for run in statements.interrupt_lapsed(connection)] == [first.id]
    recorded = jobs.find(first.id)
    assert recorded == shown._replace(ended_at=recorded.ended_at), "as it appeared before"
    assert (recorded.state, recorded.reason, recorded.detail) == (
        LOST.state,
        LOST.reason,
        LOST.detail,
    )
    assert statements.waiting(connection) == [second]
    assert statements.start(connection, second)
    assert statements.heartbeat(connection, first.id, RunProgress("working")) is None, (
        "the run is no longer its own"
    )
    assert not statements.end(connection, first, DONE)
    assert jobs.find(first.id).state == "interrupted"


def test_a_suspended_runner_that_resumes_in_time_keeps_its_run(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run = jobs.start()
    jobs.lapse(run.id)
    assert statements.heartbeat(connection, run.id, RunProgress("working")) is False
    assert not statements.end(connection, run, LOST, lapsed=True), "its runner is back"
    assert statements.end(connection, run, DONE)
    found = jobs.find(run.id)
    assert (found.state, found.figures, found.phase) == ("completed", {"a": 1}, "")


def test_a_cancellation_is_received_with_the_next_heartbeat(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run, waiting = jobs.start(), jobs.request()
    assert statements.cancel(connection, run.id)
    assert jobs.find(run.id).phase == "being cancelled"
    assert statements.heartbeat(connection, run.id, RunProgress("working")) is True
    assert statements.cancel(connection, waiting)
    assert jobs.find(waiting).state == "cancelled"
    assert not statements.cancel(connection, waiting), "it has ended"


def test_a_run_is_scheduled_unless_one_is_waiting(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    for _ in range(2):
        request_scheduled_run(jobs.world.url, "audit")
    [run] = jobs.runs(job="audit")
    assert (run.state, run.requested_by, run.params) == ("waiting", "schedule", {})
    assert statements.start(connection, run.id)
    request_scheduled_run(jobs.world.url, "audit")
    assert [one.state for one in jobs.runs(job="audit")] == ["waiting", "running"]


def test_a_scheduled_run_with_a_transient_failure_is_retried_the_same_night(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    """Regression: three audits in a row failed on a machine that was busy for 15 seconds."""
    slow = Ending("failed", "java_slow", "Java did not report its version in time.")
    first = statements.request_scheduled(connection, "audit")
    run, pauses = first, []
    for attempt in range(1, limits.JOB_ATTEMPTS_MAX + 1):
        assert run is not None
        assert statements.start(connection, run)
        started = jobs.find(run)
        assert (started.attempt, started.requested_by) == (attempt, "schedule")
        assert started.retry_of == (None if attempt == 1 else first)
        assert statements.end(connection, started, slow)
        assert statements.request_scheduled(connection, "audit") is None or attempt == 5
        retries = jobs.retries()
        if attempt == limits.JOB_ATTEMPTS_MAX:
            assert retries == []
            break
        [retry] = retries
        ended = jobs.find(run)
        assert (ended.state, ended.reason) == ("failed", "java_slow")
        pauses.append((retry.not_before - ended.ended_at) / timedelta(minutes=1))
        assert statements.waiting(connection) == [], "not yet"
        jobs.world.sql("UPDATE job_runs SET not_before = now() WHERE id = %s", retry.id)
        assert statements.waiting(connection) == [retry.id]
        run = retry.id
    assert pauses == [5, 15, 45, 135]


@pytest.mark.parametrize(
    ("requested_by", "ending"),
    [
        ("schedule", Ending("failed", "no_java", "There is no Java.")),
        ("schedule", CANCELLED),
        ("schedule", DONE),
        ("tester", Ending("failed", "java_slow", "Java did not answer.")),
    ],
)
def test_persistent_failures_and_requests_of_people_are_not_retried(
    jobs: Jobs, connection: psycopg.Connection, requested_by: str, ending: Ending
) -> None:
    run = statements.start_now(connection, RunRequest("audit", {}, requested_by))
    assert run is not None
    assert statements.end(connection, jobs.find(run), ending)
    assert len(jobs.runs(job="audit")) == 1


def test_retries_end_with_the_night(jobs: Jobs, connection: psycopg.Connection) -> None:
    """A run interrupted by day has no retry. A retry can be cancelled, and does not delay requested
    runs of the job.
    """
    run = statements.start_now(connection, RunRequest("audit", {}, "schedule"))
    assert run is not None
    jobs.world.sql("UPDATE job_runs SET requested_at = now() - interval '356 minutes'")
    jobs.lapse(run)
    assert [one.id for one in statements.interrupt_lapsed(connection)] == [run]
    assert jobs.retries() == []
    run = statements.start_now(connection, RunRequest("audit", {}, "schedule"))
    assert run is not None
    jobs.lapse(run)
    statements.interrupt_lapsed(connection)
    [retry] = jobs.retries()
    own = statements.request(connection, RunRequest("audit", {}, "tester"))
    assert statements.waiting(connection) == [own]
    assert statements.cancel(connection, retry.id)
    assert jobs.retries() == []


def test_a_clock_set_back_delays_neither_lease_expiry_nor_retries(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    """Regression: with the clock set back an hour, a dead runner's lease and the pause before
    a retry lasted an hour longer. A live runner keeps its run.
    """
    dead, alive = (
        jobs.start(),
        statements.start_now(connection, RunRequest("audit", {}, "schedule")),
    )
    assert alive is not None
    jobs.world.sql("UPDATE job_runs SET lease_expires_at = lease_expires_at + interval '1 hour'")
    assert statements.interrupt_lapsed(connection) == [], "their leases are bounded, not expired"
    lease = "SELECT max(lease_expires_at) <= now() + make_interval(secs => %s) FROM job_runs"
    assert jobs.world.sql(lease, limits.JOB_LEASE_S) == [(True,)]
    jobs.lapse(dead.id)
    assert statements.heartbeat(connection, alive, RunProgress("working")) is False
    assert [run.id for run in statements.interrupt_lapsed(connection)] == [dead.id]
    assert statements.end(connection, jobs.find(alive), Ending("failed", "spark"))
    [retry] = jobs.retries()
    assert statements.waiting(connection) == []
    jobs.world.sql("UPDATE job_runs SET not_before = not_before + interval '3 hours'")
    assert statements.waiting(connection) == [retry.id]


def test_a_filter_is_stored_as_it_was_written(jobs: Jobs, connection: psycopg.Connection) -> None:
    params = {"filter": {"b": "\0", "a": [1, 1.0, "x", 2**63]}, "since_us": 1}
    run = statements.request(connection, RunRequest("backtest", params, "tester"))
    stored = jobs.find(run).params
    assert stored == params
    assert list(stored["filter"]) == ["b", "a"]


def test_a_scheduled_request_is_retried_while_the_database_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: a run was never requested if the database was unavailable at its minute."""
    unavailable = "postgresql://127.0.0.1:1/none"
    RunPerformer().run(unavailable)
    monkeypatch.setenv("DATABASE_DIRECT_URL", unavailable)
    retries: list[Any] = []
    signals.task_retry.connect(lambda reason, **_: retries.append(reason), weak=False)
    result = app.tasks["jobs.ask"].apply(("audit",))
    assert result.state == "FAILURE", "of the last attempt"
    assert len(retries) == limits.JOB_REQUEST_RETRIES_MAX
    assert {retry.when for retry in retries} == {limits.JOB_REQUEST_RETRY_PAUSE_S}


def test_a_run_is_cancelled_before_it_publishes_or_not_at_all(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    run = jobs.start()
    assert statements.publish(connection, run.id)
    assert statements.publish(connection, run.id), "repeatable, in case the response was lost"
    assert not statements.cancel(connection, run.id), "too late"
    assert statements.heartbeat(connection, run.id, RunProgress("working")) is False
    assert statements.end(connection, run, DONE)
    early = jobs.start()
    assert statements.cancel(connection, early.id)
    assert not statements.publish(connection, early.id)


def test_a_cancellation_while_a_runner_starts_is_never_lost(
    jobs: Jobs, connection: psycopg.Connection
) -> None:
    def call(function: Callable[[psycopg.Connection, int], bool], run: int) -> bool:
        with blocking(jobs.world.url, name="test") as own:
            both.wait()
            return function(own, run)

    both = threading.Barrier(2)
    for _ in range(10):
        run = jobs.request()
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(call, each, run) for each in (statements.start, statements.cancel)]
            started, cancelled = (each.result() for each in calls)
        assert cancelled
        if not started:
            assert jobs.find(run).state == "cancelled"
            continue
        assert statements.heartbeat(connection, run, RunProgress("working")) is True
        assert statements.end(connection, jobs.find(run), CANCELLED)


def test_the_oldest_results_are_deleted_first_and_the_newest_of_each_job_stays(
    jobs: Jobs, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def completed(job: str, size: int) -> int:
        run = statements.start_now(connection, RunRequest(job, {}, "tester"))
        assert run is not None
        assert statements.end(connection, jobs.find(run), DONE._replace(result_bytes=size))
        return run

    large = completed("audit", 900)
    old, middle, new = (completed("backtest", size) for size in (10, 20, 30))
    back = "UPDATE job_runs SET ended_at = ended_at + interval '1 hour' WHERE id = ANY (%s)"
    jobs.world.sql(back, [old, middle])  # then the clock was set back
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", 950)
    assert statements.drop_results(connection) == [("backtest", old)]
    assert statements.drop_results(connection) == [], "deleted results are not dropped again"
    assert statements.delete_old_runs(connection, "backtest") == {
        old: False,
        middle: True,
        new: True,
    }
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", 1)
    assert statements.drop_results(connection) == [("backtest", middle)]
    deleted = jobs.find(middle)
    assert (deleted.state, deleted.figures, deleted.result_bytes) == ("completed", {"a": 1}, 20)
    assert not jobs.find(large).result_deleted
