"""Runs with real drivers: their results, failures and clean-up, also when a runner is killed."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.event import protobuf_codec
from eventhub.postgresql.connections import blocking
from registrations.match_index.epochs.folder import index_root
from sparkjobs.result import read_result
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.execute import RunnerSettings, RunObserver, perform
from sparkjobs.runs.statements import Run, RunProgress, RunRequest
from sparkjobs.runs.task import RunPerformer
from tests.integration.forward_world import World, eventually, place, world_database
from tests.integration.jobs_world import SPARK_S, Jobs, environment

world = pytest.fixture(scope="module")(world_database)
pytestmark = pytest.mark.timeout(300)
NICENESS_MAX = 19  # Linux


@pytest.fixture
def jobs(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    for name, text in environment(world, tmp_path).items():
        monkeypatch.setenv(name, text)
    yield Jobs(world, tmp_path)
    world.sql("DELETE FROM job_runs")


def announced(jobs: Jobs, run: int) -> list[tuple[str, str, str]]:
    """Return the announcements of a run: type, state and verdict."""
    rows = jobs.world.sql(
        "SELECT payload FROM events JOIN segments s ON s.id = segment_id"
        " WHERE s.stream_id = 1 ORDER BY sequence"
    )
    events = [protobuf_codec.decode(bytes(payload)) for (payload,) in rows]
    return [
        (event.type, event.attributes.get("state", ""), event.attributes.get("verdict", ""))
        for event in events
        if event.attributes.get("run") == run
    ]


def test_a_failed_driver_reports_its_reason_and_its_log_is_bounded(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_LOG_BYTES_MAX", 100_000)
    ended, _ = jobs.perform(jobs.start(act="fail", early=True))
    assert (ended.state, ended.reason) == ("failed", "spark")
    assert ended.detail == "ValueError: nothing at inputs of postgresql://host/db (status 1)"
    assert jobs.left(ended.id) == {"log.txt"}
    log = jobs.folder(ended.id).log.read_bytes()
    assert 25_000 < len(log) < 100_000
    assert b"ValueError: nothing at" in log
    assert b"earlier bytes were deleted" in log
    assert b"line 3 of" not in log


def test_a_run_without_spark_that_fails_says_so(jobs: Jobs) -> None:
    """Its reason was `spark`, whose remedies do not help."""
    ended, _ = jobs.perform(jobs.start(engine="local", act="fail"))
    assert (ended.state, ended.reason, ended.engine) == ("failed", "local", "local")
    assert ended.detail.startswith("ValueError: nothing at inputs of")


def test_a_slow_java_is_tried_again_and_then_reported(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the run failed with `no_java`."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(limits, "JOB_JAVA_S_MAX", 0.1)
    ended, reported = jobs.perform(jobs.start())
    assert (ended.state, ended.reason) == ("failed", "java_slow")
    waits = [one for one in reported if one.phase.startswith("waiting for Java")]
    assert len(waits) == limits.JOB_JAVA_ATTEMPTS - 1


def test_a_killed_runner_ends_its_processes_and_the_next_run_completes(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = jobs.request(act="hang", early=True)
    with jobs.hanging(lost) as hanging:
        [conf] = jobs.folder(lost).work.glob("spark.conf")
        assert stat.S_IMODE(conf.stat().st_mode) == 0o600
        nicer = min(os.getpriority(os.PRIO_PROCESS, 0) + limits.INDEX_BUILD_NICENESS, NICENESS_MAX)
        assert os.getpriority(os.PRIO_PROCESS, hanging.jvm) == nicer
        second = jobs.request(act="little", engine="local")
        RunPerformer().run(jobs.world.url)
        assert jobs.find(second).state == "waiting", "one run of a job at a time"
        hanging.process.kill()
        hanging.wait_gone()
    assert jobs.find(lost).state == "running"
    jobs.lapse(lost)
    assert jobs.find(lost).state == "interrupted", "visible before it is recorded"
    RunPerformer().run(jobs.world.url)
    assert announced(jobs, lost)[-1] == ("job.ended", "interrupted", "")
    assert jobs.find(second).state == "completed"
    assert jobs.left(lost) == {"log.txt"}, "leftovers are cleared"
    third = _perform_and_check(jobs, monkeypatch, jobs.find(second))
    assert announced(jobs, third) == [("job.requested", "", ""), ("job.ended", "completed", "ok")]


def _perform_and_check(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, first: Run) -> int:
    """Perform another run and check its result; the first result is deleted to make space."""
    size = sum(path.stat().st_size for path in jobs.folder(first.id).result.rglob("*.*"))
    assert (first.result_bytes, first.result_deleted) == (size, False)
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", size + 1)
    jobs.world.stream()
    unknown = jobs.folder(1_000)  # of a run that has no row
    unknown.create()
    run = jobs.start(since_us=7)
    ended, reported = jobs.perform(run)
    assert (ended.state, ended.verdict, ended.summary) == ("completed", "ok", "Looked.")
    [[streams]] = jobs.world.sql("SELECT count(*) FROM streams")
    assert ended.figures == {"streams": streams}, "it read the exported table"
    assert ended.engine == "spark local[1]"
    assert "acting " in {one.phase for one in reported}
    assert any(one.tasks_done for one in reported)
    assert jobs.left(run.id) == {"log.txt", "result"}
    assert not unknown.root.exists()
    stored = read_result(jobs.folder(run.id).result)
    assert {file.name for file in stored.files} == {"report.html", "table/part.csv"}
    assert jobs.left(first.id) == {"log.txt"}
    assert (jobs.find(first.id).result_deleted, jobs.find(first.id).figures) == (
        True,
        first.figures,
    )
    return run.id


def test_a_cancelled_run_ends_with_all_its_processes(jobs: Jobs) -> None:
    run = jobs.request(act="hang", early=True)
    with jobs.hanging(run) as hanging:
        jobs.cancel(run)
        hanging.process.wait(SPARK_S)
        hanging.wait_gone()
    assert (jobs.find(run).state, jobs.find(run).reason) == ("cancelled", "cancelled")
    assert jobs.left(run) == {"log.txt"}


def test_a_worker_that_stops_interrupts_its_run(jobs: Jobs) -> None:
    run, job = jobs.request(act="hang"), RunPerformer()
    thread = threading.Thread(target=job.run, args=(jobs.world.url,))
    thread.start()
    eventually(lambda: jobs.find(run).phase == "starting Spark", "a driver", SPARK_S)
    job.stop()
    thread.join(SPARK_S)
    assert not thread.is_alive()
    assert (jobs.find(run).state, jobs.find(run).reason) == ("interrupted", "interrupted")


def test_a_run_ends_before_the_hub_drops_events_for_its_files(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DISK_LOW_FACTOR", 1 << 40)  # no disk has that much space
    ended, _ = jobs.perform(jobs.start(act="hang", engine="local"))
    assert (ended.state, ended.reason) == ("failed", "storage_full")
    assert not jobs.left(ended.id) & {"inputs", "work", "result"}


def test_a_run_stopped_before_it_starts_does_nothing(jobs: Jobs) -> None:
    stop = StopSignal()
    stop.request(CANCELLED)
    ended, _ = jobs.perform(jobs.start(), stop)
    assert ended.state == "cancelled"


def test_an_altered_result_is_not_published(jobs: Jobs) -> None:
    ended, _ = jobs.perform(jobs.start(act="spoil", engine="local"))
    assert (ended.state, ended.reason) == ("failed", "bad_result")
    assert jobs.left(ended.id) == {"log.txt"}


def test_a_hub_without_java_reports_that(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jobs.data))
    ended, _ = jobs.perform(jobs.start())
    assert (ended.state, ended.reason) == ("failed", "no_java")
    assert ended.detail.startswith(f"JAVA_HOME is {jobs.data}, which contains no bin/java")


def test_a_run_that_lost_its_lease_leaves_no_result(jobs: Jobs) -> None:
    """Its row is no longer its own when its result is ready."""
    run = jobs.start()
    jobs.world.sql("UPDATE job_runs SET state = 'interrupted' WHERE id = %s", run.id)
    ended, _ = jobs.perform(run)
    assert ended.state == "interrupted"
    assert "result" not in jobs.left(run.id)


def test_the_oldest_runs_are_deleted_with_their_folders(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_RUNS_RETAINED", 2)
    stop = StopSignal()
    stop.request(CANCELLED)
    ids = [jobs.perform(jobs.start(), stop)[0].id for _ in range(4)]
    found = jobs.world.sql("SELECT id FROM job_runs ORDER BY id")
    assert [id for (id,) in found] == ids[2:]
    assert [jobs.folder(id).root.exists() for id in ids] == [False, False, True, True]


@pytest.mark.parametrize(("phase", "state"), [("sealed", "cancelled"), ("published", "completed")])
def test_a_run_whose_index_is_published_is_never_cancelled(
    jobs: Jobs, phase: str, state: str
) -> None:
    stream_id = jobs.world.stream(matching="index")
    [endpoint] = jobs.world.endpoints()
    jobs.world.register(stream_id, [endpoint] * 3, "a")
    place(jobs.world, stream_id, 0)
    params = {"stream": "orders", "stream_id": stream_id, "engine": "local"}
    stop = StopSignal()
    with blocking(jobs.world.url, name="test") as connection:
        id = statements.start_now(connection, RunRequest("match_index", params, "tester"))
        assert id is not None
        cancelled: list[bool] = []

        def cancel(progress: RunProgress) -> None:
            if progress.phase == f"building: {phase}":
                cancelled.append(statements.cancel(connection, id))
                stop.request(CANCELLED)  # as the command does on Ctrl-C

        run = jobs.find(id)
        ended = perform(
            RunnerSettings.of(read_env()), run, RunObserver(stop, cancel, SystemClock())
        )
    assert cancelled == [state == "cancelled"]
    assert ended.state == state
    manifests = list(index_root(jobs.data, stream_id).glob("*.json"))
    assert bool(manifests) == (state == "completed"), "published only by a completed run"


def test_a_result_that_is_too_large_is_not_published(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_RESULT_BYTES_MAX", 20)
    ended, _ = jobs.perform(jobs.start(act="little", engine="local"))
    assert (ended.state, ended.reason) == ("failed", "result_too_large")
    assert "the maximum is 20. The result exceeds" in ended.detail
    assert jobs.left(ended.id) == {"log.txt"}
