"""Runs of jobs by real drivers: what a run leaves, also when its runner is killed."""

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
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.rows import Run, RunProgress, RunRequest
from sparkjobs.runs.run import RunnerSettings, RunObserver, perform
from sparkjobs.runs.task import RunJob
from tests.integration.forward_world import World, eventually, place, world_database
from tests.integration.jobs_world import SPARK_S, Jobs, environment

world = pytest.fixture(scope="module")(world_database)
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def jobs(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    for name, text in environment(world, tmp_path).items():
        monkeypatch.setenv(name, text)
    yield Jobs(world, tmp_path)
    world.sql("DELETE FROM job_runs")


def told(jobs: Jobs, run: int) -> list[tuple[str, str, str]]:
    """What `system` says of the run: type, state and verdict."""
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


def test_a_driver_that_fails_says_why_and_its_log_is_bounded(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_LOG_BYTES_MAX", 100_000)
    ended, _ = jobs.done(jobs.begun(act="fail"))
    assert (ended.state, ended.reason) == ("failed", "spark")
    assert ended.detail == "ValueError: nothing at inputs of postgresql://host/db (status 1)"
    assert jobs.left(ended.id) == {"log.txt"}
    log = jobs.folder(ended.id).log.read_bytes()
    assert 25_000 < len(log) < 100_000
    assert b"ValueError: nothing at" in log
    assert b"are left out" in log
    assert b"line 3 of" not in log


def test_a_java_that_is_slow_is_asked_again_and_then_named(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run said that there is no Java."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(limits, "JOB_JAVA_S_MAX", 0.1)
    ended, heard = jobs.done(jobs.begun())
    assert (ended.state, ended.reason) == ("failed", "java_slow")
    waits = [one for one in heard if one.phase.startswith("waiting for Java")]
    assert len(waits) == limits.JOB_JAVA_ATTEMPTS - 1


def test_a_runner_that_is_killed_takes_all_with_it_and_the_next_runs_leave_what_they_found(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = jobs.ask(act="hang")
    with jobs.hanging(lost) as hanging:
        [conf] = jobs.folder(lost).work.glob("spark.conf")
        assert stat.S_IMODE(conf.stat().st_mode) == 0o600
        assert os.getpriority(os.PRIO_PROCESS, hanging.jvm) == limits.INDEX_BUILD_NICENESS
        second = jobs.ask()
        RunJob().run(jobs.world.url)
        assert jobs.find(second).state == "waiting", "one run of a job at a time"
        hanging.process.kill()
        hanging.wait_gone()
    assert jobs.find(lost).state == "running"
    jobs.lapse(lost)
    assert jobs.find(lost).state == "interrupted", "it is shown before it is noted"
    RunJob().run(jobs.world.url)
    assert told(jobs, lost)[-1] == ("job.ended", "interrupted", "")
    assert jobs.find(second).state == "completed"
    assert jobs.left(lost) == {"log.txt"}, "leftovers are cleared"
    third = _done_and_read(jobs, monkeypatch, jobs.find(second))
    assert told(jobs, third) == [("job.asked", "", ""), ("job.ended", "completed", "ok")]


def _done_and_read(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, first: Run) -> int:
    """Another run, and what it leaves. There is no room for the result of the first beside it."""
    size = sum(path.stat().st_size for path in jobs.folder(first.id).result.rglob("*.*"))
    assert (first.result_bytes, first.result_gone) == (size, False)
    monkeypatch.setattr(limits, "JOB_RESULTS_BYTES_MAX", size + 1)
    jobs.world.stream()
    gone = jobs.folder(1_000)  # of a run that nobody knows any more
    gone.make()
    run = jobs.begun(since_us=7)
    ended, heard = jobs.done(run)
    assert (ended.state, ended.verdict, ended.summary) == ("completed", "ok", "Looked.")
    [[streams]] = jobs.world.sql("SELECT count(*) FROM streams")
    assert ended.figures == {"streams": streams}, "it has read what was exported"
    assert ended.engine == "spark local[1]"
    assert "acting " in {one.phase for one in heard}
    assert any(one.tasks_done for one in heard)
    assert jobs.left(run.id) == {"log.txt", "result"}
    assert not gone.root.exists()
    stored = read_result(jobs.folder(run.id).result)
    assert {file.name for file in stored.files} == {"report.html", "table/part.csv"}
    assert jobs.left(first.id) == {"log.txt"}
    assert (jobs.find(first.id).result_gone, jobs.find(first.id).figures) == (True, first.figures)
    return run.id


def test_a_run_that_is_cancelled_ends_with_all_its_processes(jobs: Jobs) -> None:
    run = jobs.ask(act="hang")
    with jobs.hanging(run) as hanging:
        jobs.cancel(run)
        hanging.process.wait(SPARK_S)
        hanging.wait_gone()
    assert (jobs.find(run).state, jobs.find(run).reason) == ("cancelled", "cancelled")
    assert jobs.left(run) == {"log.txt"}


def test_a_worker_that_ends_ends_the_run(jobs: Jobs) -> None:
    run, job = jobs.ask(act="hang"), RunJob()
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
    monkeypatch.setattr(limits, "DISK_LOW_FACTOR", 1 << 40)  # any disk is short of that
    ended, _ = jobs.done(jobs.begun(act="hang"))
    assert (ended.state, ended.reason) == ("failed", "storage_full")
    assert not jobs.left(ended.id) & {"inputs", "work", "result"}


def test_a_run_that_was_told_to_end_before_it_begins_does_nothing(jobs: Jobs) -> None:
    stop = StopSignal()
    stop.ask(CANCELLED)
    ended, _ = jobs.done(jobs.begun(), stop)
    assert ended.state == "cancelled"


def test_a_result_that_is_not_what_it_says_is_not_shown(jobs: Jobs) -> None:
    ended, _ = jobs.done(jobs.begun(act="spoil"))
    assert (ended.state, ended.reason) == ("failed", "bad_result")
    assert jobs.left(ended.id) == {"log.txt"}


def test_a_hub_without_java_says_so(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jobs.data))
    ended, _ = jobs.done(jobs.begun())
    assert (ended.state, ended.reason) == ("failed", "no_java")
    assert ended.detail.startswith(f"JAVA_HOME is {jobs.data}, and there is no bin/java in it")


def test_a_run_whose_lease_was_lost_leaves_nothing(jobs: Jobs) -> None:
    """Its row is not its own any more when its result is ready."""
    run = jobs.begun()
    jobs.world.sql("UPDATE job_runs SET state = 'interrupted' WHERE id = %s", run.id)
    ended, _ = jobs.done(run)
    assert ended.state == "interrupted"
    assert "result" not in jobs.left(run.id)


def test_runs_beyond_those_that_are_kept_go_with_their_folders(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_RUNS_RETAINED", 2)
    stop = StopSignal()
    stop.ask(CANCELLED)
    ids = [jobs.done(jobs.begun(), stop)[0].id for _ in range(4)]
    found = jobs.world.sql("SELECT id FROM job_runs ORDER BY id")
    assert [id for (id,) in found] == ids[2:]
    assert [jobs.folder(id).root.exists() for id in ids] == [False, False, True, True]


@pytest.mark.parametrize(("phase", "state"), [("sealed", "cancelled"), ("published", "completed")])
def test_a_run_whose_index_is_out_is_never_cancelled(jobs: Jobs, phase: str, state: str) -> None:
    stream_id = jobs.world.stream(matching="index")
    [endpoint] = jobs.world.endpoints()
    jobs.world.register(stream_id, [endpoint] * 3, "a")
    place(jobs.world, stream_id, 0)
    params = {"stream": "orders", "stream_id": stream_id, "engine": "local"}
    stop = StopSignal()
    with blocking(jobs.world.url, name="test") as connection:
        id = rows.start_now(connection, RunRequest("match_index", params, "tester"))
        assert id is not None
        cancelled: list[bool] = []

        def cancel(heard: RunProgress) -> None:
            if heard.phase == f"building: {phase}":
                cancelled.append(rows.cancel(connection, id))
                stop.ask(CANCELLED)  # whoever typed the command

        run = jobs.find(id)
        ended = perform(
            RunnerSettings.of(read_env()), run, RunObserver(stop, cancel, SystemClock())
        )
    assert cancelled == [state == "cancelled"]
    assert ended.state == state
    manifests = list(index_root(jobs.data, stream_id).glob("*.json"))
    assert bool(manifests) == (state == "completed"), "the index is out, or it is not"


def test_a_result_that_is_too_large_is_not_kept(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_RESULT_BYTES_MAX", 20)
    ended, _ = jobs.done(jobs.begun(act="little"))
    assert (ended.state, ended.reason) == ("failed", "result_too_large")
    assert "of 20 that the hub keeps of one. The result is larger" in ended.detail
    assert jobs.left(ended.id) == {"log.txt"}
