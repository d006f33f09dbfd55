"""Jobs and their timetable."""

from datetime import UTC, datetime

import pytest

from eventhub.celery import app
from eventhub.schedule import TIMETABLE
from sparkjobs.runs.errors import UnknownJob
from sparkjobs.runs.jobs import JOBS, DailySchedule, job_named


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


def test_the_timetable_does_what_the_jobs_say() -> None:
    for kind in JOBS.values():
        entry = TIMETABLE.get(f"ask-{kind.name}")
        assert (entry is None) == (kind.timetable is None)
        if entry is not None and kind.timetable is not None:
            assert entry["task"] in app.tasks
            assert entry["schedule"].hour == {kind.timetable.hour}
            assert entry["schedule"].minute == {kind.timetable.minute}
    assert TIMETABLE["run-jobs"]["task"] in app.tasks


def test_only_a_plan_is_made_on_a_disk_that_runs_low() -> None:
    """It helps there, and writes little; every other job may fill it."""
    assert [kind.name for kind in JOBS.values() if not kind.large] == ["retention"]


def test_a_job_that_there_is_not() -> None:
    with pytest.raises(UnknownJob):
        job_named("other")
