"""The jobs: their purpose, input tables and schedule. Plain module.

params.py defines their parameters, hooks.py their work outside Spark.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sparkjobs.runs.errors import UnknownJob

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DailySchedule(NamedTuple):
    """A time of day in UTC."""

    hour: int
    minute: int

    def text(self) -> str:
        return f"every day at {self.hour:02}:{self.minute:02} UTC"

    def next_us(self, now_us: int) -> int:
        now = _EPOCH + timedelta(microseconds=now_us)
        today = now.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0)
        return (today + (today <= now) * _DAY - _EPOCH) // timedelta(microseconds=1)


class JobKind(NamedTuple):
    """A job. Its code is the package `sparkjobs.<name>`."""

    name: str
    about: str
    tables: frozenset[str]  # of sparkjobs/tables.py
    events: bool = False  # it reads the segments' rows
    large: bool = True  # it may fill a disk
    schedule: DailySchedule | None = None


AUDIT = JobKind(
    "audit",
    "Proves from the log, the archive and the registrations that no event was lost, duplicated or"
    " left undelivered, or reports exactly which.",
    frozenset({"streams", "segments", "live", "producers", "versions", "types", "suspensions"})
    | {"clients", "endpoints", "deliveries", "attempts", "fanouts", "listeners", "retired"},
    events=True,
    schedule=DailySchedule(2, 30),
)
BACKTEST = JobKind(
    "backtest",
    "Evaluates a filter against months of a stream's history, or a pattern against those of several"
    " streams: how often it matches, when, and by which events.",
    frozenset({"streams", "segments", "types"}),
    events=True,
)
MATCH_INDEX = JobKind(
    "match_index",
    "Rebuilds a stream's match index, with Spark if there are very many registrations.",
    frozenset({"streams", "versions"}),
)
RETENTION = JobKind(
    "retention",
    "Plans what the streams' policies would drop, compact, archive and keep; an operator applies"
    " the plan.",
    frozenset({"streams", "segments", "event_partitions"}),
    large=False,
    schedule=DailySchedule(3, 30),
)
JOBS = {kind.name: kind for kind in (AUDIT, BACKTEST, MATCH_INDEX, RETENTION)}


def job_named(name: str) -> JobKind:
    """Return a job by name. Raises UnknownJob."""
    if name not in JOBS:
        raise UnknownJob(field="job")
    return JOBS[name]
