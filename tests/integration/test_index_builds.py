"""The worker's job: builds what is asked for in a process of its own, which may end in any way."""

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
from eventhub.schedule import TIMETABLE
from registrations.match_index.builds import rows
from registrations.match_index.builds.run import Order, build
from registrations.match_index.builds.task import IndexJob
from registrations.match_index.builds.turn import turn
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.format.manifest import Manifest, read_manifest
from tests.integration.forward_world import HOME, World, eventually, place, world_database

world = pytest.fixture(scope="module")(world_database)


@pytest.fixture(autouse=True)
def data(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder; and the environment that the builder's process gets."""
    monkeypatch.setenv("DATABASE_URL", world.url)
    monkeypatch.delenv("DATABASE_DIRECT_URL", raising=False)
    monkeypatch.setenv("EVENTHUB_DATA", str(tmp_path))
    return tmp_path


def asked_stream(world: World, registrations: int = 3) -> int:
    """A stream of which somebody asked for an index."""
    stream_id = world.stream(matching="index")
    world.register(stream_id, world.endpoints(registrations), "a")
    ask(world, stream_id)
    return stream_id


def ask(world: World, stream_id: int) -> None:
    with blocking(world.url, name="test") as connection:
        rows.ask(connection, stream_id)


def named(world: World, stream_id: int) -> dict[str, str | None]:
    with blocking(world.url, name="test") as connection:
        [stream] = rows.streams(connection, [stream_id])
    return {"zone": stream.zone, "stream": stream.name}


def noted(world: World, stream_id: int) -> rows.Build:
    with blocking(world.url, name="test") as connection:
        return rows.builds(connection, [stream_id])[stream_id]


def run(world: World, data: Path) -> None:
    IndexJob(SystemClock()).run(world.url, data)


def epoch(data: Path, stream_id: int) -> Manifest:
    return read_manifest(index_root(data, stream_id))


def outcomes(outcome: str) -> float:
    return REGISTRY.get_sample_value("eventhub_index_builds_total", {"outcome": outcome}) or 0.0


@contextmanager
def held_up(data: Path, stream_id: int) -> Iterator[None]:
    """A builder that has begun comes no further: something else has the lock of the folder."""
    root = index_root(data, stream_id)
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def building(world: World, data: Path, stream_id: int, job: IndexJob) -> Iterator[int]:
    """The job at work on the stream and held up; the number of the builder's process."""
    with held_up(data, stream_id):
        thread = threading.Thread(target=job.run, args=(world.url, data))
        thread.start()
        eventually(lambda: noted(world, stream_id).state == "building", "a builder")
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


def _no_room(root: Path) -> None:
    root.mkdir()
    (root / "manifest.json.part").symlink_to("/dev/full")


def _read_only(root: Path) -> None:
    root.symlink_to("/sys/kernel")  # where also root may not make anything


@pytest.mark.parametrize(
    ("hinder", "reason", "tells"),
    [
        (_folder_for_the_manifest, "match_index_obstructed", "Remove it from the stream's folder"),
        (_folder_for_a_part, "match_index_obstructed", "Remove it from the stream's folder"),
        (_file_for_the_folder, "match_index_obstructed", "Remove it from the stream's folder"),
        (_no_room, "match_index_disk_full", "Make room"),
        (_read_only, "match_index_read_only", "Make it writable for the user"),
    ],
)
def test_a_folder_that_takes_no_index_is_named_and_the_others_are_built(
    world: World, data: Path, hinder: Callable[[Path], None], reason: str, tells: str
) -> None:
    """The reason was `internal`, with the system's words and nothing to be done."""
    before = outcomes("built"), outcomes(reason)
    bad, good, other = asked_stream(world), asked_stream(world, 5), world.stream()
    index_root(data, bad).parent.mkdir()
    hinder(index_root(data, bad))
    run(world, data)
    assert (outcomes("built") - before[0], outcomes(reason) - before[1]) == (1, 1)
    assert (epoch(data, good).epoch, epoch(data, good).ids) == (1, 5)
    found = noted(world, good)
    assert (found.state, found.requested_at_us, found.done) == ("built", None, 5)
    found = noted(world, bad)
    assert (found.state, found.requested_at_us, found.reason) == ("failed", None, reason)
    assert tells in found.detail and "tries again by itself" in found.detail
    assert str(data) not in found.detail, "tenants read it: no path of the server is in it"
    assert not index_root(data, other).exists(), "nobody asked for it, and it is not due"


def test_a_folder_of_all_indexes_that_cannot_be_used_is_named_for_each_that_waits(
    world: World, data: Path
) -> None:
    """The task ended with an error, and a build that was asked for waited for ever."""
    stream_id = asked_stream(world)
    (data / "indexes").symlink_to("/sys/kernel")
    run(world, data)
    found = noted(world, stream_id)
    assert (found.state, found.reason) == ("failed", "match_index_read_only")
    with blocking(world.url, name="test") as connection:
        assert stream_id in rows.later(connection)
    (data / "indexes").unlink()
    ask(world, stream_id)
    run(world, data)
    assert noted(world, stream_id).state == "built"


def test_a_folder_in_the_place_of_an_old_manifest_keeps_nothing_from_being_built(
    world: World, data: Path
) -> None:
    stream_id = asked_stream(world)
    for _ in range(2):
        build(Order(world.url, data, stream_id))
    old = index_root(data, stream_id) / "epoch-00000001"
    (old / "manifest.json").unlink()
    (old / "manifest.json").mkdir()
    assert build(Order(world.url, data, stream_id)).epoch == 3


def test_a_clock_that_was_set_back_repeats_no_build_and_delays_none(
    world: World, data: Path
) -> None:
    """An hour back: what was asked for before seemed to be asked for after the build had begun, so
    it was built again and again; a builder that had gone seemed to be at work, and a stream whose
    build had failed was not tried.
    """
    stream_id = asked_stream(world)
    later = "UPDATE index_builds SET {} WHERE stream_id = %s"
    world.sql(later.format("requested_at = now() + interval '1 hour'"), stream_id)
    run(world, data)
    assert noted(world, stream_id).state == "built"
    with blocking(world.url, name="test") as connection:
        assert stream_id not in rows.asked(connection)
        rows.ask(connection, stream_id)
        rows.begin(connection, stream_id, 3)
        world.sql(later.format("heartbeat_at = now() + interval '1 hour'"), stream_id)
        assert noted(world, stream_id).state == "waiting", "nobody has heard it since"
        assert stream_id not in [stream.id for stream in rows.at_work(connection)]
        rows.hear(connection, stream_id, "read", 1)
        assert noted(world, stream_id).state == "building"
        rows.fail(connection, stream_id, "process", "")
        assert stream_id in rows.later(connection)
        world.sql(later.format("ended_at = now() + interval '1 hour'"), stream_id)
        assert stream_id not in rows.later(connection)


def test_a_builder_that_is_killed_leaves_what_was_there_and_is_tried_again_later(
    world: World, data: Path
) -> None:
    stream_id = asked_stream(world)
    build(Order(world.url, data, stream_id))
    for number, reason in ((signal.SIGKILL, "process"), (signal.SIGALRM, "too_long")):
        ask(world, stream_id)
        before = outcomes(reason)
        job = IndexJob(SystemClock())
        with building(world, data, stream_id, job) as pid:
            assert job.at_work() == named(world, stream_id)
            niceness = os.getpriority(os.PRIO_PROCESS, pid)
            assert niceness == limits.INDEX_BUILD_NICENESS, "it would take who matches his cores"
            os.kill(pid, number)
        assert epoch(data, stream_id).epoch == 1
        assert (noted(world, stream_id).state, noted(world, stream_id).reason) == ("failed", reason)
        assert outcomes(reason) - before == 1
    with blocking(world.url, name="test") as connection:
        assert stream_id in rows.later(connection)
        connection.execute(
            "UPDATE index_builds SET requested_at = now() WHERE stream_id = %s", (stream_id,)
        )
    run(world, data)
    assert epoch(data, stream_id).epoch == 1, "it was not to be tried before its time"
    ask(world, stream_id)
    run(world, data)
    assert epoch(data, stream_id).epoch == 2, "who asks is not made to wait"


def test_a_job_that_is_told_to_stop_ends_its_builder_and_counts_no_failure(
    world: World, data: Path
) -> None:
    stream_id = asked_stream(world)
    before = outcomes("process")
    job = IndexJob(SystemClock())
    with building(world, data, stream_id, job):
        job.stop()
    assert outcomes("process") == before
    assert noted(world, stream_id).requested_at_us is not None
    assert noted(world, stream_id).reason == "", "who stops it knows why"
    job.run(world.url, data)
    assert not (index_root(data, stream_id) / "manifest.json").exists()


def test_one_builder_is_at_work_at_a_time(world: World, data: Path) -> None:
    stream_id = asked_stream(world)
    with turn(data, wait=True) as ours:
        assert ours
        run(world, data)
        assert noted(world, stream_id).started_at_us is None
        with turn(data, wait=False) as free:
            assert not free


def test_who_asks_while_a_build_is_under_way_gets_another_one(world: World, data: Path) -> None:
    stream_id = asked_stream(world)
    with blocking(world.url, name="test") as connection:
        rows.begin(connection, stream_id, 3)
        assert noted(world, stream_id).state == "building"
        rows.ask(connection, stream_id)
        rows.complete(connection, stream_id, 3)
        assert stream_id in rows.asked(connection)
        rows.begin(connection, stream_id, 3)
        rows.complete(connection, stream_id, 3)
        assert stream_id not in rows.asked(connection)


def test_the_pause_after_a_failure_begins_when_it_ends_whoever_asked_meanwhile(
    world: World,
) -> None:
    stream_id = asked_stream(world)
    older = "UPDATE index_builds SET {} = now() - interval '61 minutes' WHERE stream_id = %s"
    with blocking(world.url, name="test") as connection:
        rows.begin(connection, stream_id, 3)
        world.sql("UPDATE index_builds SET attempts = 12 WHERE stream_id = %s", stream_id)
        world.sql(older.format("started_at"), stream_id)
        assert stream_id in rows.later(connection), "it was heard just now"
        rows.ask(connection, stream_id)
        rows.fail(connection, stream_id, "too_long", "")
        assert stream_id in rows.asked(connection)
        assert stream_id in rows.later(connection)
        world.sql(older.format("ended_at"), stream_id)
        assert stream_id not in rows.later(connection)


def test_a_builder_that_dies_before_it_has_begun_has_had_its_try(
    world: World, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = asked_stream(world)
    monkeypatch.setenv("PYTHONHOME", str(data / "none"))  # Python itself does not start
    for tries in (1, 2):
        run(world, data)
        found = noted(world, stream_id)
        assert (found.state, found.reason, found.requested_at_us) == ("failed", "process", None)
        [[counted]] = world.sql("SELECT attempts FROM index_builds WHERE stream_id = %s", stream_id)
        assert counted == tries
        with blocking(world.url, name="test") as connection:
            assert stream_id in rows.later(connection)
        older = "UPDATE index_builds SET requested_at = now(), ended_at = now() - interval '1 hour'"
        world.sql(f"{older} WHERE stream_id = %s", stream_id)


def test_one_of_all_workers_looks_for_what_is_due(
    world: World, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INDEX_DELTA_MIN", 3)
    clock, stream_id = ManualClock(), world.stream(matching="index")
    workers = [IndexJob(clock), IndexJob(clock)]
    workers[0].run(world.url, data)
    world.register(stream_id, world.endpoints(3), "a")
    place(world, stream_id, 0)
    for worker in workers:
        worker.run(world.url, data)
    assert not index_root(data, stream_id).exists(), "the other one has just looked"
    clock.advance_s(limits.INDEX_DUE_INTERVAL_S)
    workers[1].run(world.url, data)
    assert epoch(data, stream_id).ids == 3


def test_a_build_by_hand_steps_back_behind_those_who_match(world: World, data: Path) -> None:
    stream_id = asked_stream(world)
    [[name]] = world.sql("SELECT name FROM streams WHERE id = %s", stream_id)
    words = ("index", "build", "--stream", name, "--zone", "forward")
    with held_up(data, stream_id):
        process = subprocess.Popen([sys.executable, str(HOME / "manage.py"), *words])
        try:
            eventually(lambda: noted(world, stream_id).state == "building", "a builder")
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == limits.INDEX_BUILD_NICENESS
            assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "500\n"
        finally:
            process.kill()
            process.wait()


def test_a_builder_that_was_not_heard_for_long_is_taken_for_gone(world: World, data: Path) -> None:
    stream_id = world.stream()
    with blocking(world.url, name="test") as connection:
        rows.begin(connection, stream_id, 0)
        connection.execute(
            "UPDATE index_builds SET heartbeat_at = now() - interval '1 minute'"
            " WHERE stream_id = %s",
            (stream_id,),
        )
        assert noted(world, stream_id).state == "interrupted"
        assert stream_id in rows.noted(connection)


def test_an_unreachable_database_is_no_error(data: Path) -> None:
    IndexJob(SystemClock()).run("postgresql://127.0.0.1:1/none", data)


def test_the_timetable_starts_the_archiver() -> None:
    assert TIMETABLE["build-indexes"]["task"] in app.tasks
