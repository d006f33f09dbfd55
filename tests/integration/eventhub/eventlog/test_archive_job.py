"""The worker's job: archives due segments in a process of its own, and updates the metrics."""

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from eventhub.celery import app
from eventhub.eventlog.archive.process import ArchiveProcess
from eventhub.worker.beat import TIMETABLE
from tests.integration.archive_world import archived, archived_stream, fill
from tests.integration.eventlog_world import execute, log_database

database = pytest.fixture(log_database)


@pytest.fixture(autouse=True)
def of_the_archiver(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment of the archiver's process."""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.delenv("DATABASE_DIRECT_URL", raising=False)
    monkeypatch.setenv("EVENTHUB_ARCHIVE_URL", str(tmp_path))


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"eventhub_{name}", labels) or 0.0


def test_due_segments_are_archived_and_counted(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    before = sample("archived_events_total"), sample("archived_bytes_total")
    ArchiveProcess().run(database, str(tmp_path))
    assert len(archived(database, stream)) == 3
    assert sample("archived_events_total") - before[0] == 30
    size = sum(path.stat().st_size for path in tmp_path.rglob("zone=*/**/*.parquet"))
    assert sample("archived_bytes_total") - before[1] == size
    assert (sample("archive_waiting_events"), sample("archive_lag_seconds")) == (0, 0)
    assert sample("archive_configured") == 1


def test_failures_are_counted_by_reason_and_retried_later(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 20)
    execute(database, "DELETE FROM events WHERE sequence = 14")
    before = sample("archive_failures_total", reason="segment_unreadable")
    ArchiveProcess().run(database, str(tmp_path))
    assert sample("archive_failures_total", reason="segment_unreadable") - before == 1
    assert sample("archive_waiting_events") == 10


def test_without_an_archive_waiting_segments_are_in_the_metrics(database: str) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 20)
    execute(database, "UPDATE segments SET sealed_at = now() - interval '1 hour' WHERE first = 1")
    ArchiveProcess().run(database, "")
    assert archived(database, stream) == []
    assert sample("archive_configured") == 0
    assert sample("archive_waiting_events") == 20
    assert 3_600 <= sample("archive_lag_seconds") < 3_700


def test_a_stopped_job_starts_no_process(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    job = ArchiveProcess()
    job.stop()
    job.run(database, str(tmp_path))
    assert archived(database, stream) == []


def test_an_unreachable_database_is_no_error(tmp_path: Path) -> None:
    ArchiveProcess().run("postgresql://127.0.0.1:1/none", str(tmp_path))


def test_the_timetable_starts_the_archiver() -> None:
    assert TIMETABLE["archive"]["task"] in app.tasks
