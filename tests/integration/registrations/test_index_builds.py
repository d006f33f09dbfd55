"""The worker's task: it runs requested builds in child processes, which may end in any way."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from eventhub.base import limits
from eventhub.base.clock import ManualClock, SystemClock
from eventhub.base.guardian import descendants
from eventhub.celery import app
from eventhub.postgresql.connections import blocking
from eventhub.worker.beat import TIMETABLE
from registrations.match_index.builds import statements
from registrations.match_index.builds.build import BuildOrder, build
from registrations.match_index.builds.builder_lock import builder_lock
from registrations.match_index.builds.task import IndexBuilder
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.format.manifest import IndexManifest, read_manifest
from tests.integration.forward_world import HOME, World, eventually, place, world_database

world = pytest.fixture(scope="module")(world_database)


@pytest.fixture(autouse=True)
def data(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the data folder; set the environment of the builder's process."""
    monkeypatch.setenv("DATABASE_URL", world.url)
    monkeypatch.delenv("DATABASE_DIRECT_URL", raising=False)
    monkeypatch.setenv("EVENTHUB_DATA", str(tmp_path))
    return tmp_path


def stream_with_request(world: World, registrations: int = 3) -> int:
    """Create a stream with a requested build."""
    stream_id = world.stream(matching="index")
    world.register(stream_id, world.endpoints(registrations), "a")
    request(world, stream_id)
    return stream_id


def request(world: World, stream_id: int) -> None:
    with blocking(world.url, name="test") as connection:
        statements.request(connection, stream_id)


def named(world: World, stream_id: int) -> dict[str, str | None]:
    with blocking(world.url, name="test") as connection:
        [stream] = statements.streams(connection, [stream_id])
    return {"zone": stream.zone, "stream": stream.name}


def last_build(world: World, stream_id: int) -> statements.IndexBuildNote:
    with blocking(world.url, name="test") as connection:
        return statements.builds(connection, [stream_id])[stream_id]


def run(world: World, data: Path) -> None:
    IndexBuilder(SystemClock()).run(world.url, data)


def epoch(data: Path, stream_id: int) -> IndexManifest:
    return read_manifest(index_root(data, stream_id))


def outcomes(outcome: str) -> float:
    return REGISTRY.get_sample_value("eventhub_index_builds_total", {"outcome": outcome}) or 0.0


@contextmanager
def blocked(data: Path, stream_id: int) -> Iterator[None]:
    """Block a started builder: hold the lock of the folder."""
    root = index_root(data, stream_id)
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def building(world: World, data: Path, stream_id: int, job: IndexBuilder) -> Iterator[int]:
    """Run the job on the stream, blocked; yield the process id of the builder."""
    with blocked(data, stream_id):
        thread = threading.Thread(target=job.run, args=(world.url, data))
        thread.start()
        eventually(lambda: last_build(world, stream_id).state == "building", "a builder")
        [pid] = [pid for pid in descendants(os.getpid()) if _builds(pid, stream_id)]
        yield pid
        thread.join(20)
        assert not thread.is_alive()


def _builds(pid: int, stream_id: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return False
    return words[1:4] == [b"-m", b"registrations.match_index.builds", str(stream_id).encode()]


def _folder_for_the_manifest(root: Path) -> None:
    (root / "manifest.json").mkdir(parents=True)


def _folder_for_a_part(root: Path) -> None:
    (root / "manifest.json.part").mkdir(parents=True)


def _file_for_the_folder(root: Path) -> None:
    root.write_text("")


def _disk_full(root: Path) -> None:
    root.mkdir()
    (root / "manifest.json.part").symlink_to("/dev/full")


def _read_only(root: Path) -> None:
    root.symlink_to("/sys/kernel")  # where even root cannot create files


@pytest.mark.parametrize(
    ("hinder", "reason", "hint"),
    [
        (_folder_for_the_manifest, "match_index_obstructed", "Remove it from the stream's folder"),
        (_folder_for_a_part, "match_index_obstructed", "Remove it from the stream's folder"),
        (_file_for_the_folder, "match_index_obstructed", "Remove it from the stream's folder"),
        (_disk_full, "match_index_disk_full", "Free space"),
        (_read_only, "match_index_read_only", "Make it writable for the user"),
    ],
)
def test_an_unusable_folder_is_reported_and_other_indexes_are_built(
    world: World, data: Path, hinder: Callable[[Path], None], reason: str, hint: str
) -> None:
    """The reason was `internal`, with the system's message and no hint."""
    before = outcomes("built"), outcomes(reason)
    bad, good, other = stream_with_request(world), stream_with_request(world, 5), world.stream()
    index_root(data, bad).parent.mkdir()
    hinder(index_root(data, bad))
    run(world, data)
    assert (outcomes("built") - before[0], outcomes(reason) - before[1]) == (1, 1)
    assert (epoch(data, good).epoch, epoch(data, good).ids) == (1, 5)
    found = last_build(world, good)
    assert (found.state, found.requested_at_us, found.done) == ("built", None, 5)
    found = last_build(world, bad)
    assert (found.state, found.requested_at_us, found.reason) == ("failed", None, reason)
    assert hint in found.detail and "Workers retry" in found.detail
    assert str(data) not in found.detail, "tenants read it: no path of the server is in it"
    assert not index_root(data, other).exists(), "it is neither requested nor due"


def test_an_unusable_folder_of_all_indexes_is_reported_for_each_requested_build(
    world: World, data: Path
) -> None:
    """The task failed, and a requested build waited forever."""
    stream_id = stream_with_request(world)
    (data / "indexes").symlink_to("/sys/kernel")
    run(world, data)
    found = last_build(world, stream_id)
    assert (found.state, found.reason) == ("failed", "match_index_read_only")
    with blocking(world.url, name="test") as connection:
        assert stream_id in statements.backing_off(connection)
    (data / "indexes").unlink()
    request(world, stream_id)
    run(world, data)
    assert last_build(world, stream_id).state == "built"


def test_a_folder_named_as_an_old_manifest_does_not_prevent_a_build(
    world: World, data: Path
) -> None:
    stream_id = stream_with_request(world)
    for _ in range(2):
        build(BuildOrder(world.url, data, stream_id))
    old = index_root(data, stream_id) / "epoch-00000001"
    (old / "manifest.json").unlink()
    (old / "manifest.json").mkdir()
    assert build(BuildOrder(world.url, data, stream_id)).epoch == 3


def test_a_clock_that_is_set_back_neither_repeats_nor_delays_a_build(
    world: World, data: Path
) -> None:
    """With the clock one hour back, an earlier request seemed to follow the start of the build, so
    the build repeated without end; a dead builder seemed to be running, and a stream whose
    build had failed was not retried.
    """
    stream_id = stream_with_request(world)
    later = "UPDATE index_builds SET {} WHERE stream_id = %s"
    world.sql(later.format("requested_at = now() + interval '1 hour'"), stream_id)
    run(world, data)
    assert last_build(world, stream_id).state == "built"
    with blocking(world.url, name="test") as connection:
        assert stream_id not in statements.requested(connection)
        statements.request(connection, stream_id)
        statements.start(connection, stream_id, 3)
        world.sql(later.format("heartbeat_at = now() + interval '1 hour'"), stream_id)
        assert last_build(world, stream_id).state == "waiting", "it sent no heartbeat since"
        assert stream_id not in [stream.id for stream in statements.active(connection)]
        statements.heartbeat(connection, stream_id, "read", 1)
        assert last_build(world, stream_id).state == "building"
        statements.fail(connection, stream_id, "process", "")
        assert stream_id in statements.backing_off(connection)
        world.sql(later.format("ended_at = now() + interval '1 hour'"), stream_id)
        assert stream_id not in statements.backing_off(connection)


def test_a_killed_builder_leaves_the_current_epoch_and_is_retried_later(
    world: World, data: Path
) -> None:
    stream_id = stream_with_request(world)
    build(BuildOrder(world.url, data, stream_id))
    for number, reason in ((signal.SIGKILL, "process"), (signal.SIGALRM, "too_long")):
        request(world, stream_id)
        before = outcomes(reason)
        job = IndexBuilder(SystemClock())
        with building(world, data, stream_id, job) as pid:
            assert job.at_work() == named(world, stream_id)
            niceness = os.getpriority(os.PRIO_PROCESS, pid)
            assert niceness == limits.INDEX_BUILD_NICENESS, "it would take cores from matching"
            os.kill(pid, number)
        assert epoch(data, stream_id).epoch == 1
        assert (last_build(world, stream_id).state, last_build(world, stream_id).reason) == (
            "failed",
            reason,
        )
        assert outcomes(reason) - before == 1
    with blocking(world.url, name="test") as connection:
        assert stream_id in statements.backing_off(connection)
        connection.execute(
            "UPDATE index_builds SET requested_at = now() WHERE stream_id = %s", (stream_id,)
        )
    run(world, data)
    assert epoch(data, stream_id).epoch == 1, "it is in backoff"
    request(world, stream_id)
    run(world, data)
    assert epoch(data, stream_id).epoch == 2, "a request ends the backoff"


def test_a_stopped_job_ends_its_builder_and_counts_no_failure(world: World, data: Path) -> None:
    stream_id = stream_with_request(world)
    before = outcomes("process")
    job = IndexBuilder(SystemClock())
    with building(world, data, stream_id, job):
        job.stop()
    assert outcomes("process") == before
    assert last_build(world, stream_id).requested_at_us is not None
    assert last_build(world, stream_id).reason == "", "a stop is no failure"
    job.run(world.url, data)
    assert not (index_root(data, stream_id) / "manifest.json").exists()


def test_one_builder_runs_at_a_time(world: World, data: Path) -> None:
    stream_id = stream_with_request(world)
    with builder_lock(data, wait=True) as ours:
        assert ours
        run(world, data)
        assert last_build(world, stream_id).started_at_us is None
        with builder_lock(data, wait=False) as free:
            assert not free


def test_a_request_during_a_build_gets_another_one(world: World, data: Path) -> None:
    stream_id = stream_with_request(world)
    with blocking(world.url, name="test") as connection:
        statements.start(connection, stream_id, 3)
        assert last_build(world, stream_id).state == "building"
        statements.request(connection, stream_id)
        statements.complete(connection, stream_id, 3)
        assert stream_id in statements.requested(connection)
        statements.start(connection, stream_id, 3)
        statements.complete(connection, stream_id, 3)
        assert stream_id not in statements.requested(connection)


def test_the_backoff_starts_at_the_failure_also_after_a_request_during_the_build(
    world: World,
) -> None:
    stream_id = stream_with_request(world)
    older = "UPDATE index_builds SET {} = now() - interval '61 minutes' WHERE stream_id = %s"
    with blocking(world.url, name="test") as connection:
        statements.start(connection, stream_id, 3)
        world.sql("UPDATE index_builds SET attempts = 12 WHERE stream_id = %s", stream_id)
        world.sql(older.format("started_at"), stream_id)
        assert stream_id in statements.backing_off(connection), "it sent a heartbeat just now"
        statements.request(connection, stream_id)
        statements.fail(connection, stream_id, "too_long", "")
        assert stream_id in statements.requested(connection)
        assert stream_id in statements.backing_off(connection)
        world.sql(older.format("ended_at"), stream_id)
        assert stream_id not in statements.backing_off(connection)


def test_a_builder_that_dies_before_its_start_counts_as_an_attempt(
    world: World, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = stream_with_request(world)
    monkeypatch.setenv("PYTHONHOME", str(data / "none"))  # Python itself does not start
    for attempts in (1, 2):
        run(world, data)
        found = last_build(world, stream_id)
        assert (found.state, found.reason, found.requested_at_us) == ("failed", "process", None)
        [[counted]] = world.sql("SELECT attempts FROM index_builds WHERE stream_id = %s", stream_id)
        assert counted == attempts
        with blocking(world.url, name="test") as connection:
            assert stream_id in statements.backing_off(connection)
        older = "UPDATE index_builds SET requested_at = now(), ended_at = now() - interval '1 hour'"
        world.sql(f"{older} WHERE stream_id = %s", stream_id)


def test_one_of_all_workers_searches_for_due_builds(
    world: World, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INDEX_DELTA_MIN", 3)
    clock, stream_id = ManualClock(), world.stream(matching="index")
    workers = [IndexBuilder(clock), IndexBuilder(clock)]
    workers[0].run(world.url, data)
    world.register(stream_id, world.endpoints(3), "a")
    place(world, stream_id, 0)
    for worker in workers:
        worker.run(world.url, data)
    assert not index_root(data, stream_id).exists(), "the other one has just searched"
    clock.advance_s(limits.INDEX_DUE_INTERVAL_S)
    workers[1].run(world.url, data)
    assert epoch(data, stream_id).ids == 3


def test_a_manual_build_has_a_low_priority(world: World, data: Path) -> None:
    stream_id = stream_with_request(world)
    [[name]] = world.sql("SELECT name FROM streams WHERE id = %s", stream_id)
    words = ("index", "build", "--stream", name, "--zone", "forward")
    with blocked(data, stream_id):
        process = subprocess.Popen([sys.executable, str(HOME / "manage.py"), *words])
        try:
            eventually(lambda: last_build(world, stream_id).state == "building", "a builder")
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == limits.INDEX_BUILD_NICENESS
            assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "500\n"
        finally:
            process.kill()
            process.wait()


def test_a_builder_without_heartbeats_counts_as_interrupted(world: World, data: Path) -> None:
    stream_id = world.stream()
    with blocking(world.url, name="test") as connection:
        statements.start(connection, stream_id, 0)
        connection.execute(
            "UPDATE index_builds SET heartbeat_at = now() - interval '1 minute'"
            " WHERE stream_id = %s",
            (stream_id,),
        )
        assert last_build(world, stream_id).state == "interrupted"
        assert stream_id in statements.open_or_failed(connection)


def test_an_unavailable_database_is_no_error(data: Path) -> None:
    IndexBuilder(SystemClock()).run("postgresql://127.0.0.1:1/none", data)


def test_the_timetable_has_the_task() -> None:
    assert TIMETABLE["build-indexes"]["task"] in app.tasks


def test_an_index_of_a_stream_that_another_machine_deleted_is_removed(
    world: World, data: Path
) -> None:
    """The deletion removed the index on the machine of its worker only."""
    erased, kept = (stream_with_request(world) for _ in range(2))
    run(world, data)
    assert index_root(data, erased).exists()
    with blocking(world.url, name="test") as connection:
        connection.execute(
            "UPDATE streams SET deleted_at = now(), erased_at = now() WHERE id = %s", (erased,)
        )
    clock = ManualClock(SystemClock().now_us() + int(2e6 * limits.INDEX_DUE_INTERVAL_S))
    IndexBuilder(clock).run(world.url, data)
    assert not index_root(data, erased).exists()
    assert index_root(data, kept).exists()
