"""An archiver that is killed or suspended at any moment leaves nothing incomplete visible, and the
next run finishes.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from eventhub.eventlog.archive import catalog
from eventhub.eventlog.archive.catalog import SegmentFilter
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.reader import Archive
from eventhub.eventlog.archive.verify import examine, verify
from eventhub.supervisor.hub import HOME
from tests.integration.archive_world import (
    archive,
    archived,
    archived_stream,
    crashing,
    files,
    fill,
    free_lease,
)
from tests.integration.eventlog_world import execute, log_database

database = pytest.fixture(log_database)
EVENTS = 30
TIMEOUT_S = 60


def chosen(moments: list[str]) -> list[str]:
    """Return all moments except writes, and of each file the first, a middle and the last write."""
    writes = [moment for moment in moments if moment.endswith("write")]
    kept = {writes[0], writes[len(writes) // 2], *writes[-2:]}
    return [moment for moment in moments if not moment.endswith("write") or moment in kept]


def in_sight_is_whole(place: Path) -> bool:
    """Check that every manifest names a complete file, and that every file can be read to
    its end.
    """
    root = ArchiveFolder(str(place))
    manifests = [path.relative_to(place) for path in place.rglob("zone=*/**/*.json")]
    return all(not examine(root, str(path)).problems for path in manifests)


def test_a_killed_archiver_leaves_nothing_incomplete_and_the_next_run_finishes(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=EVENTS)
    payloads = fill(database, stream, EVENTS)
    with crashing("archive_crash", database) as ask:
        *listed, status = ask(tmp_path / "list", "list")
        assert status == "0"
        expected = files(tmp_path / "list")
        moments = chosen(listed)
        assert len(moments) >= 10
        for moment in moments:
            execute(database, "UPDATE segments SET archive_path = NULL")
            place = tmp_path / moment
            assert ask(place, moment) == [str(-signal.SIGKILL)], moment
            assert archived(database, stream) == [], moment
            assert in_sight_is_whole(place), moment
            free_lease(database)
            assert [done.reason for done in archive(database, place)] == [""], moment
            assert files(place) == expected, moment
            assert list((place / "_unfinished").iterdir()) == [], moment
            [segment] = archived(database, stream)
            found = Archive(str(place)).read(segment, 0, EVENTS, 1 << 30)
            assert [one.payload for one in found] == payloads, moment


class Process:
    """The archiver's own process."""

    def __init__(self, url: str, place: Path) -> None:
        env = {**os.environ, "DATABASE_URL": url, "EVENTHUB_ARCHIVE_URL": str(place)}
        env.pop("DATABASE_DIRECT_URL", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eventhub.eventlog.archive"],
            env=env,
            cwd=HOME,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        status = self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@pytest.mark.slow
def test_an_archiver_killed_repeatedly_archives_everything(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=50)
    payloads = fill(database, stream, 1_000)
    for lines in (4, 6):
        process = Process(database, tmp_path)
        assert all(process.line() for _ in range(lines))
        process.send(signal.SIGKILL)
        assert process.ended() == -signal.SIGKILL
        assert in_sight_is_whole(tmp_path)
        free_lease(database)
    assert len(archived(database, stream)) >= 10
    assert Process(database, tmp_path).ended() == 0
    with psycopg.connect(database) as connection:
        rows = catalog.archived_segments(connection, SegmentFilter())
    assert [verdict.problems for verdict in verify(ArchiveFolder(str(tmp_path)), rows)] == [[]] * 20
    assert len(files(tmp_path)) == 40
    source = Archive(str(tmp_path))
    found = [source.read(row, row.first - 1, 50, 1 << 30) for row in archived(database, stream)]
    assert [one.payload for page in found for one in page] == payloads


def test_a_suspended_archiver_ends_after_another_has_taken_over(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=50)
    fill(database, stream, 2_000)
    process = Process(database, tmp_path)
    assert process.line()
    process.send(signal.SIGSTOP)
    free_lease(database)
    done = archive(database, tmp_path)
    assert done and all(not one.reason for one in done)
    process.send(signal.SIGCONT)
    assert process.ended() == 0
    assert len(archived(database, stream)) == 40
    assert len(files(tmp_path)) == 80
    assert in_sight_is_whole(tmp_path)


def test_a_stopped_archiver_releases_the_lease(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 1_000)
    process = Process(database, tmp_path)
    assert process.line()
    process.send(signal.SIGTERM)
    assert process.ended() == 0
    with psycopg.connect(database) as connection:
        assert not catalog.status(connection).busy
