"""Celery's beat. TIMETABLE lists the periodic tasks, with their times in UTC. `SteadyScheduler`
writes a heartbeat, so that the hub's health reports when it stops, and keeps running after the
clock is set back.

A run continues the work of the previous one, so a message that no worker takes in time expires.
Composition root. Plain module.
"""

import time
from datetime import timedelta
from functools import cached_property
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from celery.schedules import crontab

from delivery.health.heartbeat import HeartbeatWriter
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
# A daily time reached before the clock was set back does not run again; a last run further ahead
# than the next daily time cannot be real.
_CRONTAB_AHEAD_MAX = timedelta(days=1)


class SteadyScheduler(PersistentScheduler):  # type: ignore[misc]
    """A scheduler that corrects entries whose last run is in the future. Each iteration of beat's
    loop is a heartbeat, so one that hangs while sending has none.
    """

    _heartbeat_s = float("-inf")
    _log: int | None = None  # changes with every append; None: unknown

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._sent: dict[str, tuple[float, int | None]] = {}  # by entry: when, and the log then
        super().__init__(*args, **kwargs)

    @cached_property
    def _heartbeats(self) -> HeartbeatWriter:
        return HeartbeatWriter(read_env().database_url)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send due entries, and return the seconds until the next call."""
        self._beat()
        ahead = [entry for entry in self.schedule.values() if _is_ahead(entry)]
        for entry in ahead:
            entry.last_run_at = entry.default_now()
        if ahead:
            log.warning("clock_set_back", entries=sorted(entry.name for entry in ahead))
            self._heap = None  # all times in it were those of the clock before
        return float(super().tick(*args, **kwargs))

    def _beat(self) -> None:
        now_s = time.monotonic()
        if now_s - self._heartbeat_s >= limits.HEALTH_HEARTBEAT_INTERVAL_S:
            self._log = self._heartbeats.beat("beat")
            self._heartbeat_s = now_s

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the entry, unless it is log-driven and nothing was appended since the last time."""
        if entry.name not in RESTING or self._has_news(entry.name):
            super().apply_entry(entry, producer=producer)

    def _has_news(self, name: str) -> bool:
        now_s = time.monotonic()
        sent_s, log_then = self._sent.get(name, (float("-inf"), None))
        known = self._log is not None and self._log == log_then
        if known and now_s - sent_s < limits.TIMETABLE_REST_S:
            return False
        self._sent[name] = now_s, self._log
        return True


def _is_ahead(entry: ScheduleEntry) -> bool:
    most = _CRONTAB_AHEAD_MAX if isinstance(entry.schedule, crontab) else timedelta(0)
    ahead: timedelta = entry.last_run_at - entry.default_now()
    return ahead > most
