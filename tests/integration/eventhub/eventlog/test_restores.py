"""A database restored to an earlier state assigns sequences again. Whichever way it was restored,
a listener that is ahead of it is refused, also when the log has passed it meanwhile.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.restore_world import Cursor, World, world


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("restores")) as created:
        yield created


def crashed(hub: World) -> Path:
    """Return a copy of the folder as in a snapshot of its volume; the server goes on."""
    hub.store.crash()
    copy = hub.store.copy(hub.root / "crashed")
    hub.store.start()
    return copy


def stopped(hub: World) -> Path:
    """Return a copy of the folder of a server that was shut down; the server goes on."""
    hub.store.stop()
    copy = hub.store.copy(hub.root / "stopped")
    hub.store.start()
    return copy


def base_backup(hub: World) -> Path:
    copy = hub.root / "base"
    hub.store.program("pg_basebackup", "-D", str(copy), "-c", "fast")
    return copy


def dumped(hub: World) -> Path:
    file = hub.root / "hub.dump"
    hub.hub.manage("backup", str(file))
    return file


def assert_refused(hub: World, stream: str, ahead: Cursor) -> None:
    """Check that a listener is refused before and after the log has passed its cursor, and that one
    that was not ahead continues.
    """
    before = hub.head(stream)
    assert before[1] < ahead[1]
    passed = hub.emit(stream, 4)
    assert passed[1] > ahead[1]
    problem = hub.read(stream, ahead).refused(409, "segment_mismatch")
    assert problem["current"]["segment"] == passed[0] != ahead[0]
    events = hub.read(stream, (ahead[0], 3)).json["events"]
    assert [one["sequence"] for one in events] == list(range(4, passed[1] + 1))


@pytest.mark.parametrize("copied", [base_backup, crashed, stopped])
def test_a_listener_ahead_of_a_restored_folder_is_refused(
    hub: World, copied: Callable[[World], Path]
) -> None:
    """PostgreSQL treats each of them as a crash, or as a normal start."""
    stream = hub.new_stream(copied.__name__.replace("_", "-"))
    hub.emit(stream, 3)
    copy = copied(hub)
    ahead = hub.emit(stream, 3)
    hub.wait_marked(ahead)
    hub.store.crash()
    hub.store.restore(copy)
    hub.store.start()
    assert_refused(hub, stream, ahead)
    assert hub.recovered()[-1] == "restored"


def test_a_listener_ahead_of_a_dump_restored_in_place_is_refused(hub: World) -> None:
    """Nothing of the server changes: the same folder, timeline and start."""
    stream = hub.new_stream("dumped")
    hub.emit(stream, 3)
    file = dumped(hub)
    ahead = hub.emit(stream, 3)
    refused = hub.hub.refuse("restore", str(file))
    assert "stop the hub first" in refused
    hub.hub.web[0].stop()
    cut = hub.root / "cut.dump"
    cut.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert "nothing was changed" in hub.hub.refuse("restore", str(cut))
    assert (6,) in hub.store.sql("SELECT sequence FROM heads")
    assert "new segments" in hub.hub.manage("restore", str(file))
    hub.hub.web[0].start()
    assert_refused(hub, stream, ahead)
    assert hub.recovered()[-1] == "restored"


def test_a_listener_ahead_of_a_point_in_time_is_refused(hub: World) -> None:
    stream = hub.new_stream("in-time")
    wal = hub.root / "wal"
    wal.mkdir()
    wal.chmod(0o777)
    hub.store.sql("ALTER SYSTEM SET archive_mode = on")
    hub.store.sql(f"ALTER SYSTEM SET archive_command = 'cp %p {wal}/%f'")
    hub.store.stop()
    hub.store.start()
    copy = hub.root / "in-time"
    hub.emit(stream, 3)
    hub.store.program("pg_basebackup", "-D", str(copy), "-c", "fast")
    hub.emit(stream, 1)
    [[moment]] = hub.store.sql("SELECT clock_timestamp()::text")
    ahead = hub.emit(stream, 3)
    hub.store.sql("SELECT pg_switch_wal()")
    hub.store.stop()  # which archives the rest
    hub.store.restore(copy)
    with (hub.store.folder / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"restore_command = 'cp {wal}/%f %p'\n")
        settings.write(f"recovery_target_time = '{moment}'\n")
        settings.write("recovery_target_action = promote\n")
    (hub.store.folder / "recovery.signal").touch()
    hub.store.start()
    assert hub.head(stream)[1] == 4
    assert_refused(hub, stream, ahead)


def test_a_crash_of_everything_loses_nothing_and_listeners_continue(hub: World) -> None:
    stream = hub.new_stream("crash")
    before = hub.emit(stream, 3)
    reasons = hub.recovered()
    hub.store.crash()
    hub.hub.web[0].kill()
    hub.store.start()
    hub.hub.web[0].start()
    after = hub.emit(stream, 1)
    assert after == (before[0], 4)
    assert [one["sequence"] for one in hub.read(stream, before).json["events"]] == [4]
    assert hub.recovered() == reasons


def test_a_log_without_its_mark_is_unproven(hub: World) -> None:
    """The mark is in the machine's memory: after a restart of the machine nothing distinguishes a
    restored copy from the original.
    """
    stream = hub.new_stream("unproven")
    before = hub.emit(stream, 3)
    hub.hub.web[0].stop()
    hub.store.stop()
    shutil.rmtree(hub.store.marks)
    hub.store.marks.mkdir()
    hub.store.start()
    hub.hub.web[0].start()
    after = hub.emit(stream, 1)
    assert (after[0] != before[0], after[1]) == (True, 4)
    assert [one["sequence"] for one in hub.read(stream, before).json["events"]] == [4]
    assert hub.recovered()[-1] == "unproven"


def test_a_listener_ahead_reveals_a_loss_that_nothing_else_reveals(hub: World) -> None:
    """Folder and mark are restored together, so they agree. The first listener that is ahead makes
    the stream start a new segment, and no later one gets other events for its sequences.
    """
    stream = hub.new_stream("shown")
    hub.wait_marked(hub.emit(stream, 3))
    hub.store.crash()
    hub.hub.web[0].kill()
    copy = hub.store.copy(hub.root / "with-mark")
    marks = shutil.copytree(hub.store.marks, hub.root / "with-mark-marks")
    hub.store.start()
    hub.hub.web[0].start()
    ahead = hub.emit(stream, 3)
    hub.store.crash()
    hub.hub.web[0].kill()
    hub.store.restore(copy)
    shutil.rmtree(hub.store.marks)
    shutil.copytree(marks, hub.store.marks)
    hub.store.start()
    hub.hub.web[0].start()
    assert hub.head(stream) == (ahead[0], 3), "the mark revealed it"
    hub.read(stream, ahead).refused(409, "segment_mismatch")
    assert_refused(hub, stream, ahead)
    assert hub.recovered()[-1] == "reader_ahead"
    current = hub.head(stream)
    hub.read(stream, (current[0], current[1] + 9)).refused(409, "segment_mismatch")
    assert hub.head(stream) == current, "a segment of this life stays"
