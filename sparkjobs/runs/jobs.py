"""The jobs there are: what each is for, what it reads, and when it is asked for by itself.
Plain module.

What its parameters may be is said by params.py, what is done besides Spark by hooks.py.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sparkjobs.runs.errors import UnknownJob
from sparkjobs.tables import TABLES

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DailySchedule(NamedTuple):
    """A time of the day, UTC."""

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
    events: bool = False  # with the rows of its segments
    large: bool = True  # it may fill a disk
    timetable: DailySchedule | None = None


AUDIT = JobKind(
    "audit",
    "Proves from the log, the archive and the registrations that nothing was lost, doubled or left"
    " undelivered, or says exactly what was.",
    frozenset(TABLES) - {"groups"},
    events=True,
    timetable=DailySchedule(2, 30),
)
BACKTEST = JobKind(
    "backtest",
    "Tries a filter on months of a stream's history: how many events, when, and which.",
    frozenset({"streams", "segments", "types"}),
    events=True,
)
MATCH_INDEX = JobKind(
    "match_index",
    "Builds a stream's match index anew, by Spark where there are very many registrations.",
    frozenset({"streams", "versions"}),
)
RETENTION = JobKind(
    "retention",
    "Plans what the policies of streams would drop, compact, archive and keep; nothing is done"
    " before an operator applies the plan.",
    frozenset({"streams", "segments", "groups"}),
    large=False,
    timetable=DailySchedule(3, 30),
)
JOBS = {kind.name: kind for kind in (AUDIT, BACKTEST, MATCH_INDEX, RETENTION)}


def job_named(name: str) -> JobKind:
    """Raises UnknownJob."""
    if name not in JOBS:
        raise UnknownJob(field="job")
    return JOBS[name]
