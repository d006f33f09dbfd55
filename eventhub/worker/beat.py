"""Celery's beat. TIMETABLE lists the periodic tasks, with their times in UTC. `SteadyScheduler`
writes a heartbeat, so that the hub's health reports when it stops, and keeps running after the
clock is set back.

A run continues the work of the previous one, so a message that no worker takes in time expires.
Composition root. Plain module.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from celery.schedules import crontab

from delivery.health.heartbeat import HeartbeatWriter, TimetableFacts
from eventhub.base import limits
from eventhub.base.broker import ARCHIVE, BUILD_INDEXES, DELETE_DUE, REPLAY, RUN_JOBS
from eventhub.base.env import read_env
from eventhub.base.logs import get_logger
from sparkjobs.runs.jobs import JOBS

HOUR_S = 3600
# requested work starts at once (base/broker.py); these find due work, and lost requests
DUE_WORK_INTERVAL_S = 60
EXPIRY_INTERVAL_S = 30
JOBS_INTERVAL_S = 30
REPLAY_INTERVAL_S = 15
# entries that rest, up to TIMETABLE_REST_S, while nothing is appended to the log: then no segment
# was sealed, no registration changed, and no job was requested
RESTING = frozenset({"archive", "build-indexes", "run-jobs"})
# entries that are sent only if the database has something for them: a task that finds nothing costs
# a message, a connection to the database and 15 ms
FOUND: dict[str, Callable[[TimetableFacts], bool]] = {
    "delete-expired": attrgetter("expired"),
    "delete-due": attrgetter("deletions"),
    "replay": attrgetter("replays"),
}


def _every(seconds: int, task: str) -> dict[str, Any]:
    """Return an entry of the timetable; its message expires when the next one is due."""
    return {"task": task, "schedule": timedelta(seconds=seconds), "options": {"expires": seconds}}


TIMETABLE = {
    # partitions of old deliveries, attempts and listeners are archived and dropped
    "retire": _every(HOUR_S, "delivery.retire"),
    # lanes that have been unused for long, leftovers of deleted endpoints and old statistics are
    # deleted
    "delete-leftovers": _every(HOUR_S, "delivery.delete_leftovers"),
    # ended versions of registrations that nothing can need any more are deleted
    "purge-versions": _every(HOUR_S, "registrations.purge_versions"),
    # endpoints that have expired are deleted, with the registrations that name them
    "delete-expired": _every(EXPIRY_INTERVAL_S, "registrations.delete_expired"),
    # what is to be deleted is, at the end of its grace period
    "delete-due": _every(DUE_WORK_INTERVAL_S, DELETE_DUE),
    # sealed segments of streams with the policy `archive` go to the archive
    "archive": _every(DUE_WORK_INTERVAL_S, ARCHIVE),
    # match indexes that are requested, or outdated by changes, are built
    "build-indexes": _every(DUE_WORK_INTERVAL_S, BUILD_INDEXES),
    # requested runs of Spark jobs, also by the entries below, are executed
    "run-jobs": _every(JOBS_INTERVAL_S, RUN_JOBS),
    # replay runs whose worker ended go on
    "replay": _every(REPLAY_INTERVAL_S, REPLAY),
    # the audit and the retention plan are requested, each once a day
    **{
        f"ask-{kind.name}": {
            "task": "jobs.ask",
            "args": (kind.name,),
            "schedule": crontab(hour=kind.schedule.hour, minute=kind.schedule.minute),
            "options": {"expires": HOUR_S},
        }
        for kind in JOBS.values()
        if kind.schedule
    },
}


log = get_logger(__name__)
_MOMENTS_S = 15  # regular entries run at multiples of it, so that beat wakes once for all
_FACTS_S = 1.0  # the age of what is known of the entries' work when they are due
# A daily time reached before the clock was set back does not run again; a last run further ahead
# than the next daily time cannot be real.
_CRONTAB_AHEAD_MAX = timedelta(days=1)


class SteadyScheduler(PersistentScheduler):  # type: ignore[misc]
    """A scheduler that corrects entries whose last run is in the future, and sends what has
    something to do. Each iteration of beat's loop is a heartbeat, so one that hangs while sending
    has none.
    """

    _heartbeat_s = float("-inf")
    _facts: TimetableFacts | None = None  # as of the last heartbeat; None: unknown

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._sent: dict[str, tuple[float, int | None]] = {}  # by entry: when, and the log then
        super().__init__(*args, **kwargs)

    @cached_property
    def _heartbeats(self) -> HeartbeatWriter:
        return HeartbeatWriter(read_env().database_url)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send due entries, and return the seconds until the next call."""
        self._beat(limits.HEALTH_HEARTBEAT_INTERVAL_S)
        entries = list(self.schedule.values())
        now = entries[0].default_now() if entries else None  # it takes 50 µs
        ahead = [entry for entry in entries if _is_ahead(entry, now)]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            log.warning("clock_set_back", entries=sorted(entry.name for entry in ahead))
            self._heap = None  # all times in it were those of the clock before
        return float(super().tick(*args, **kwargs))

    def schedules_equal(self, *_schedules: Any) -> bool:
        """Return that the timetable is what it was. It is a constant, which Celery would compare
        entry by entry at each step.
        """
        return True

    def adjust(self, n: float | None, drift: float = 0.0) -> float | None:
        """Return how long to wait: until the entry is due. Celery would wake 10 ms before, and ask
        without a pause until then.
        """
        return n

    def reserve(self, entry: ScheduleEntry) -> ScheduleEntry:
        """Note that an entry runs."""
        reserved = super().reserve(entry)
        late_s = _past_moment_s(reserved, reserved.last_run_at.timestamp())
        reserved.last_run_at -= timedelta(seconds=late_s)
        return reserved

    def _when(self, entry: ScheduleEntry, next_time_to_run: float) -> float:
        """Return when an entry runs in so many seconds: at a moment that it shares with others."""
        when_s = float(super()._when(entry, next_time_to_run))
        return when_s - _past_moment_s(entry, when_s) if next_time_to_run else when_s

    def _beat(self, interval_s: float) -> None:
        """Write a heartbeat, unless there was one within an interval."""
        now_s = time.monotonic()
        if now_s - self._heartbeat_s >= interval_s:
            self._facts = self._heartbeats.timetable()
            self._heartbeat_s = time.monotonic()  # an unreachable database takes its time

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the entry, if it may have something to do."""
        if self._has_work(entry.name):
            super().apply_entry(entry, producer=producer)

    def apply_async(self, entry: ScheduleEntry, *args: Any, **kwargs: Any) -> Any:
        """Send the entry now, and note it. Raises SchedulingError while Redis is unavailable: then
        the entry does not rest.
        """
        facts = self._facts
        sent = super().apply_async(entry, *args, **kwargs)
        self._sent[entry.name] = time.monotonic(), facts.log if facts else None
        return sent

    def _has_work(self, name: str) -> bool:
        if name in FOUND:
            self._beat(_FACTS_S)
            return self._facts is None or FOUND[name](self._facts)
        return name not in RESTING or self._has_news(name)

    def _has_news(self, name: str) -> bool:
        """Return whether something was appended since the entry was sent, or it rested for long."""
        now_s, log = time.monotonic(), self._facts.log if self._facts else None
        sent_s, log_then = self._sent.get(name, (float("-inf"), None))
        known = log is not None and log == log_then
        return not known or now_s - sent_s >= limits.TIMETABLE_REST_S


def _past_moment_s(entry: ScheduleEntry, at_s: float) -> float:
    """Return how long ago, at a time, the last moment was that the entry shares with others."""
    daily = isinstance(entry.schedule, crontab)
    return 0.0 if daily else at_s % min(_MOMENTS_S, entry.schedule.seconds)


def _is_ahead(entry: ScheduleEntry, now: datetime | None) -> bool:
    most = _CRONTAB_AHEAD_MAX if isinstance(entry.schedule, crontab) else timedelta(0)
    ahead: timedelta = entry.last_run_at - now
    return ahead > most
