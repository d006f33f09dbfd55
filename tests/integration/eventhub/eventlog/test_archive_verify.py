"""`verify` reports each problem of the archive, and no other; the command prints them."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import execute_from_command_line

from eventhub.eventlog.archive import catalog, manifest
from eventhub.eventlog.archive.catalog import SegmentFilter
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.verify import verify
from tests import forked
from tests.databases import migrated_database
from tests.integration.archive_world import archive, archived, archived_stream, files, fill
from tests.integration.eventlog_world import execute, log_database

database = pytest.fixture(log_database)


@pytest.fixture
def whole_database() -> Iterator[str]:
    """Create a database with the tables of all packages."""
    with migrated_database("verify") as url:
        yield url


def problems(url: str, place: Path) -> list[tuple[int, str]]:
    """Return (first sequence of the segment, kind of problem)."""
    with psycopg.connect(url) as connection:
        rows = catalog.archived_segments(connection, SegmentFilter())
    return [
        (verdict.row.first, problem.kind)
        for verdict in verify(ArchiveFolder(str(place)), rows)
        for problem in verdict.problems
    ]


class SegmentFiles(NamedTuple):
    """The second of three segments, with sequences 11 to 20."""

    url: str
    file: Path
    manifest: Path

    def say(self, **changed: Any) -> None:
        """Write the manifest again with other fields and a right checksum."""
        made = manifest.load(self.manifest.read_bytes(), "")
        self.manifest.write_bytes(manifest.dump(made._replace(**changed)))

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Replace the file by another one whose digest the manifest has."""
        pq.write_table(change(pq.read_table(self.file, partitioning=None)), self.file)
        content = self.file.read_bytes()
        self.say(file_bytes=len(content), file_sha256=hashlib.sha256(content).hexdigest())


def _altered(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


HARM: dict[str, Callable[[SegmentFiles], object]] = {
    "missing_manifest": lambda segment: segment.manifest.unlink(),
    "bad_manifest": lambda segment: _altered(segment.manifest),
    "missing_file": lambda segment: segment.file.unlink(),
    "truncated": lambda segment: os.truncate(segment.file, 1_000),
    "altered": lambda segment: _altered(segment.file),
    "wrong_count": lambda segment: segment.say(events=9),
    "wrong_range": lambda segment: segment.rewrite(lambda table: table.slice(1)),
    "wrong_bytes": lambda segment: execute(
        segment.url, "UPDATE segments SET bytes = bytes + 1 WHERE first = 11"
    ),
    "wrong_payloads": lambda segment: segment.say(payload_sha256="0" * 64),
    "wrong_segment": lambda segment: segment.say(stream="other"),
    "unreadable": lambda segment: segment.rewrite(lambda table: table.drop_columns(["payload"])),
}


def test_each_problem_is_reported_with_its_segment_and_no_other(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    archive(database, tmp_path)
    assert problems(database, tmp_path) == []
    path = tmp_path / archived(database, stream)[1].path
    [file] = path.parent.glob(f"{path.stem}*.parquet")
    segment = SegmentFiles(database, file, path)
    good = (file.read_bytes(), path.read_bytes())
    for kind, harm in HARM.items():
        harm(segment)
        found = problems(database, tmp_path)
        assert (11, kind) in found, (kind, found)
        assert {first for first, _ in found} == {11}, kind
        file.write_bytes(good[0])
        path.write_bytes(good[1])
        execute(database, "UPDATE segments SET bytes = %s WHERE first = 11", _bytes(path))
    assert problems(database, tmp_path) == []


def _bytes(path: Path) -> int:
    return manifest.load(path.read_bytes(), "").payload_bytes


def test_a_segment_that_does_not_continue_its_predecessor_is_reported(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    archive(database, tmp_path)
    execute(database, "UPDATE segments SET last = 9 WHERE last = 10")
    assert (11, "not_continuous") in problems(database, tmp_path)


def test_a_damaged_segment_still_in_the_database_is_archived_again(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 10)
    archive(database, tmp_path)
    [file] = tmp_path.rglob("zone=*/**/*.parquet")
    before = files(tmp_path)
    _altered(file)
    execute(database, "UPDATE segments SET archive_path = NULL")
    assert [done.reason for done in archive(database, tmp_path)] == [""]
    assert files(tmp_path) == before
    assert problems(database, tmp_path) == []


def manage(url: str, place: str | Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DATABASE_URL": url, "EVENTHUB_ARCHIVE_URL": str(place)}
    env.pop("DATABASE_DIRECT_URL", None)
    return forked.manage(env, "archive", *words)


def test_the_command_archives_verifies_and_prints_the_status(
    whole_database: str, tmp_path: Path
) -> None:
    stream = archived_stream(whole_database, "orders", events_max=10)
    fill(whole_database, stream, 30)
    without = manage(whole_database, "", "status")
    assert without.returncode == 0
    assert "EVENTHUB_ARCHIVE_URL is not set" in without.stdout
    assert "3 segments, 30 events" in without.stdout
    assert manage(whole_database, "", "run").returncode == 1
    run = manage(whole_database, tmp_path, "run", "--stream", "orders")
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "3 segments archived")
    assert "waiting   0 segments" in manage(whole_database, tmp_path, "status").stdout
    good = manage(whole_database, tmp_path, "verify")
    assert good.returncode == 0 and good.stdout.splitlines()[-1].endswith("0 problems")
    file = max(tmp_path.rglob("zone=*/**/*.parquet"))
    _altered(file)
    bad = manage(whole_database, tmp_path, "verify")
    assert bad.returncode == 1
    assert f"altered: zone=1/stream=orders/{file.name}" in bad.stdout
    assert "1 problems" in bad.stdout


def test_failures_are_in_the_status_and_the_exit_code(whole_database: str, tmp_path: Path) -> None:
    stream = archived_stream(whole_database, "orders", events_max=10)
    fill(whole_database, stream, 20)
    execute(whole_database, "DELETE FROM events WHERE sequence = 14")
    run = manage(whole_database, tmp_path, "run")
    assert run.returncode == 1
    assert "segment_unreadable" in run.stdout
    assert "1 segments archived, 1 failed" in run.stdout
    status = manage(whole_database, tmp_path, "status").stdout
    assert "1 attempts" in status and "segment_unreadable: Event 14" in status


def test_every_option_of_the_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    def help_of(*words: str) -> str:
        with pytest.raises(SystemExit):
            execute_from_command_line(["manage.py", "archive", *words, "--help"])
        return capsys.readouterr().out

    assert all(word in help_of() for word in ("run", "status", "verify", "EVENTHUB_ARCHIVE_URL"))
    assert "--segment UUID" in help_of("verify")


def test_a_manifest_is_plain_json(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 10)
    archive(database, tmp_path)
    [segment] = archived(database, stream)
    fields = json.loads((tmp_path / segment.path).read_text())
    assert (fields["segment"], fields["first"], fields["last"]) == (segment.uuid, 1, 10)
