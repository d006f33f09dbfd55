"""Jobs and their schedules."""

from datetime import UTC, datetime

import pytest

from eventhub.celery import app
from eventhub.worker.beat import TIMETABLE
from sparkjobs.runs.errors import UnknownJob
from sparkjobs.runs.jobs import AUDIT, JOBS, DailySchedule, job_named
from sparkjobs.tables import TABLES


def at(day: int, hour: int, minute: int, second: int = 0) -> int:
    return int(datetime(2026, 12, day, hour, minute, second, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (at(30, 2, 29, 59), at(30, 2, 30)),
        (at(30, 2, 30), at(31, 2, 30)),
        (at(30, 23, 0), at(31, 2, 30)),
    ],
)
def test_next_time_of_a_daily_job(now: int, then: int) -> None:
    assert DailySchedule(2, 30).next_us(now) == then


def test_jobs_read_tables_that_exist_and_the_audit_all_but_sizes() -> None:
    assert all(kind.tables <= TABLES.keys() for kind in JOBS.values())
    assert TABLES.keys() - AUDIT.tables == {"event_partitions"}


def test_the_timetable_contains_the_schedules_of_jobs() -> None:
    for kind in JOBS.values():
        entry = TIMETABLE.get(f"ask-{kind.name}")
        assert (entry is None) == (kind.schedule is None)
        if entry is not None and kind.schedule is not None:
            assert entry["task"] in app.tasks
            assert entry["schedule"].hour == {kind.schedule.hour}
            assert entry["schedule"].minute == {kind.schedule.minute}
    assert TIMETABLE["run-jobs"]["task"] in app.tasks


def test_only_retention_plans_run_when_the_disk_is_low() -> None:
    """A plan helps there and writes little; every other job may fill the disk."""
    assert [kind.name for kind in JOBS.values() if not kind.large] == ["retention"]


def test_an_unknown_job_is_refused() -> None:
    with pytest.raises(UnknownJob):
        job_named("other")
