"""The timetable when the clock is set back."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler, SchedulingError, event_t
from celery.schedules import crontab

from delivery.health.heartbeat import HeartbeatWriter, TimetableFacts
from eventhub.base import limits
from eventhub.celery import app as hub_app
from eventhub.worker.beat import FOUND, SteadyScheduler

OFTEN_S = 5
NOTHING = TimetableFacts(log=7, replays=False, expired=False, deletions=False)
TABLE = {
    "often": {"task": "t", "schedule": timedelta(seconds=OFTEN_S)},
    "hourly": {"task": "t", "schedule": timedelta(hours=1)},
    "nightly": {"task": "t", "schedule": crontab(hour=2, minute=30)},
}


@pytest.fixture
def app() -> Iterator[Celery]:
    with Celery("beat", broker="memory://", set_as_current=False) as created:
        created.conf.update(beat_schedule=TABLE, timezone="UTC")
        yield created


def started(app: Celery, folder: Path) -> SteadyScheduler:
    """Return a scheduler whose entries have just run, in the order of their next times."""
    scheduler = SteadyScheduler(app, schedule_filename=str(folder / "beat"))
    assert 0 < scheduler.tick() <= OFTEN_S
    return scheduler


def set_clock_back(beat: SteadyScheduler, by: timedelta) -> None:
    """Simulate a clock set back: every time that beat recorded was later by this."""
    for entry in beat.schedule.values():
        entry.last_run_at += by
    beat._heap = [
        event_t(time + by.total_seconds(), priority, entry) for time, priority, entry in beat._heap
    ]


@pytest.mark.parametrize("by", [timedelta(minutes=2), timedelta(hours=1), timedelta(days=400)])
@pytest.mark.parametrize("restarted", [False, True])
def test_setting_the_clock_back_does_not_stop_the_timetable(
    app: Celery, tmp_path: Path, by: timedelta, restarted: bool
) -> None:
    """For an hour nothing was archived, built or started."""
    beat = started(app, tmp_path)
    set_clock_back(beat, by)
    if restarted:
        beat.sync()
        beat.close()
        beat = SteadyScheduler(app, schedule_filename=str(tmp_path / "beat"))
    assert beat.tick() <= OFTEN_S
    entries = beat.schedule
    for name in ("often", "hourly"):
        assert entries[name].last_run_at <= entries[name].default_now()
    nightly = entries["nightly"]
    assert nightly.is_due().next <= timedelta(days=2).total_seconds()
    beat.close()


def test_a_daily_entry_does_not_run_twice(app: Celery, tmp_path: Path) -> None:
    """The clock passes that time twice."""
    beat = started(app, tmp_path)
    nightly = beat.schedule["nightly"]
    set_clock_back(beat, timedelta(hours=1))
    ran_at = nightly.last_run_at
    beat.tick()
    assert nightly.last_run_at == ran_at
    beat.close()


def test_log_driven_entries_rest_while_nothing_is_appended(
    app: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries pause for at most TIMETABLE_REST_S, and not while the database is unavailable."""
    sent = []
    app.conf.beat_schedule = {name: {"task": name, "schedule": timedelta(minutes=1)}
                              for name in ("archive", "retire")}  # fmt: skip
    beat = SteadyScheduler(app, schedule_filename=str(tmp_path / "beat"))
    monkeypatch.setattr(Scheduler, "apply_async", lambda _, entry, **__: sent.append(entry.name))
    for log, rest_s, expected in ((None, 300.0, 3), (7, 300.0, 1), (8, 300.0, 1), (8, 0.0, 3)):
        monkeypatch.setattr(limits, "TIMETABLE_REST_S", rest_s)
        facts = None if log is None else NOTHING._replace(log=log)
        monkeypatch.setattr(beat, "_facts", facts)
        sent.clear()
        for _ in range(3):
            for entry in beat.schedule.values():
                beat.apply_entry(entry)
        assert (sent.count("archive"), sent.count("retire")) == (expected, 3)
    beat.close()


def test_an_entry_that_could_not_be_sent_does_not_rest(
    app: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was requested while Redis was away waited for five minutes after its return."""
    app.conf.beat_schedule = {"archive": {"task": "archive", "schedule": timedelta(minutes=1)}}
    beat = SteadyScheduler(app, schedule_filename=str(tmp_path / "beat"))
    monkeypatch.setattr(beat, "_facts", NOTHING)
    tried: list[str] = []

    def send(_: Scheduler, entry: ScheduleEntry, **__: object) -> None:
        tried.append(entry.name)
        if len(tried) < 3:
            raise SchedulingError("Redis is unavailable")

    monkeypatch.setattr(Scheduler, "apply_async", send)
    for _ in range(5):
        beat.apply_entry(beat.schedule["archive"])
    assert tried == ["archive"] * 3
    beat.close()


@pytest.mark.parametrize(
    ("fact", "entry"),
    [("replays", "replay"), ("expired", "delete-expired"), ("deletions", "delete-due")],
)
def test_entries_that_the_database_has_nothing_for_are_not_sent(
    app: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fact: str, entry: str
) -> None:
    """Each was a message and a connection to the database, eight times a minute."""
    sent: list[str] = []
    app.conf.beat_schedule = {
        name: {"task": name, "schedule": timedelta(minutes=1)} for name in FOUND
    }
    beat = SteadyScheduler(app, schedule_filename=str(tmp_path / "beat"))
    monkeypatch.setattr(Scheduler, "apply_async", lambda _, entry, **__: sent.append(entry.name))
    for facts in (NOTHING, NOTHING._replace(**{fact: True}), None):
        monkeypatch.setattr(HeartbeatWriter, "timetable", lambda _, found=facts: found)
        monkeypatch.setattr(beat, "_heartbeat_s", float("-inf"))
        for each in beat.schedule.values():
            beat.apply_entry(each)
    assert sorted(name for name in sent if name in FOUND) == sorted([entry, *FOUND])
    beat.close()


def test_entries_run_at_the_same_moments(
    app: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beat woke for each by itself, and did not sleep in the last 10 ms before."""
    clock = datetime(2026, 11, 29, 12, 0, 7, 310_000, tzinfo=UTC)
    monkeypatch.setattr(Celery, "now", lambda _: clock)
    monkeypatch.setattr(HeartbeatWriter, "timetable", lambda _: NOTHING)
    ran: list[tuple[str, datetime]] = []
    app.conf.beat_schedule = {
        str(every_s): {"task": "t", "schedule": timedelta(seconds=every_s)}
        for every_s in (15, 30, 60)
    }
    beat = SteadyScheduler(app, schedule_filename=str(tmp_path / "beat"))
    monkeypatch.setattr(
        Scheduler,
        "apply_async",
        lambda _, entry, **__: ran.append((beat.reserve(entry).name, clock)),
    )
    waits = 0
    end = clock + timedelta(minutes=11)
    while clock < end:
        pause_s = beat.tick()
        waits += pause_s > 0
        clock += timedelta(seconds=pause_s, milliseconds=3)  # a step takes its time
    assert waits <= 11 * 4 + 4  # the first minute has more
    steady = [(name, at) for name, at in ran if end - timedelta(minutes=9) <= at < end]
    assert Counter(name for name, _ in steady) == {"15": 36, "30": 18, "60": 9}
    assert all(at.timestamp() % 15 < 0.2 for _, at in steady)
    beat.close()


def test_the_hub_uses_the_steady_scheduler() -> None:
    assert hub_app.conf.beat_scheduler == f"{SteadyScheduler.__module__}:SteadyScheduler"
