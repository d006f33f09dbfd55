"""Runs of jobs as rows: asked for, begun, heard of, ended. SQL module.

A run is its own lease: of each job one row at most is `running`, its runner prolongs it by the
database's clock, and what a runner writes asks that the row still is.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog import append
from eventhub.eventlog.system import SYSTEM_STREAM_ID, Announcement, drafts_of
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from sparkjobs.runs.retry import longest_pause_s, pause_before_repeat_s

SQL = queries.load("sparkjobs/runs/sql/runs.sql")

Connection = psycopg.Connection[Any]
State = Literal["waiting", "running", "completed", "failed", "cancelled", "interrupted"]
ZoneAnnouncement = tuple[str | None, Announcement]  # by the zone of a run; None: the whole hub
COMMAND, SCHEDULE = "command", "timetable"  # who asked, when no operator did


class Run(NamedTuple):
    """A run as it is shown. What its columns are is said by the model."""

    id: int
    job: str
    state: State  # `interrupted`: its runner has gone, or was asked to end
    requested_by: str
    requested_at: datetime
    attempt: int
    repeats: int | None
    not_before: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    phase: str
    rows_done: int
    stages_done: int
    stages: int
    tasks_done: int
    tasks: int
    params: dict[str, Any]
    engine: str
    verdict: str
    summary: str
    figures: dict[str, Any]
    reason: str
    detail: str
    result_bytes: int
    result_gone: bool

    @property
    def over(self) -> bool:
        return self.state not in ("waiting", "running")


class DroppedResult(NamedTuple):
    """A run whose result had to make room."""

    job: str
    id: int


class _RetainedRun(NamedTuple):
    """A run, and whether its result is kept."""

    id: int
    has_result: bool


class RunProgress(NamedTuple):
    """How far a run is."""

    phase: str
    rows_done: int = 0
    stages_done: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0
    engine: str = ""


class Ending(NamedTuple):
    """How a run ends."""

    state: State
    reason: str = ""
    detail: str = ""
    verdict: str = ""
    summary: str = ""
    figures: dict[str, Any] = {}  # noqa: RUF012 - never changed
    result_bytes: int = 0


class RunRequest(NamedTuple):
    """A run that is wanted. `params` are checked (params.py)."""

    job: str
    params: dict[str, Any]
    requested_by: str


def request(connection: Connection, asked: RunRequest) -> int:
    """A run that waits for a worker; announce it in the same transaction."""
    values = {**asked._asdict(), "params": json.dumps(asked.params)}
    [run] = scalars(connection).execute(SQL["ask"], values).fetchall()
    return int(run)


def start_now(connection: Connection, asked: RunRequest) -> int | None:
    """A run that begins now, announced; None if another one of the job is under way."""
    try:
        with _announcing(connection) as announced:
            run = request(connection, asked)
            _begin(connection, run)
            announced.append(request_announcement(run, asked))
    except psycopg.errors.UniqueViolation:
        return None
    return run


def request_scheduled(connection: Connection, job: str) -> int | None:
    """A run of the whole hub that waits for a worker, announced; None if one of the
    timetable waits already.
    """
    asked = RunRequest(job, {}, SCHEDULE)
    with _announcing(connection) as announced:
        values = {"job": job, "requested_by": SCHEDULE}
        if scalars(connection).execute(SQL["has_waiting"], values).fetchone():
            return None
        run = request(connection, asked)
        announced.append(request_announcement(run, asked))
    return run


def request_announcement(run: int, asked: RunRequest) -> ZoneAnnouncement:
    """Return the announcement of a run that is requested."""
    attributes = {"job": asked.job, "run": run}
    return asked.params.get("zone"), Announcement("job.asked", attributes)


def waiting(connection: Connection) -> list[int]:
    """The runs that may begin now."""
    values = {"pause_s_max": longest_pause_s()}
    return scalars(connection).execute(SQL["waiting"], values).fetchall()


def start(connection: Connection, run: int) -> bool:
    """False if it does not wait any more, or another run of the job is under way."""
    try:
        return _begin(connection, run)
    except psycopg.errors.UniqueViolation:
        return False


def _begin(connection: Connection, run: int) -> bool:
    values = {"id": run, "lease_s": limits.JOB_LEASE_S}
    return connection.execute(SQL["begin"], values).fetchone() is not None


def heartbeat(connection: Connection, run: int, heard: RunProgress) -> bool | None:
    """Prolong the lease and say how far it is. True if the run is to be cancelled; None if it is
    not the caller's any more.
    """
    values = {"id": run, "lease_s": limits.JOB_LEASE_S, **heard._asdict()}
    cancelled: bool | None = scalars(connection).execute(SQL["beat"], values).fetchone()
    return cancelled


def publish(connection: Connection, run: int) -> bool:
    """From here on nobody cancels the run. False if it was cancelled before, or is not the caller's
    any more.
    """
    return connection.execute(SQL["publish"], {"id": run}).fetchone() is not None


def end(connection: Connection, run: Run, ending: Ending, *, lapsed: bool = False) -> bool:
    """Note the end of a run that is running, ask for its repeat if one is due (repeat.py), and
    announce both, in one transaction. False if it is not running any more; `lapsed`: or if its
    runner is still there.
    """
    values = {**ending._asdict(), "id": run.id, "lapsed": lapsed}
    values["figures"] = json.dumps(ending.figures)
    with _announcing(connection) as announced:
        if connection.execute(SQL["end"], values).fetchone() is None:
            return False
        announced.append(end_announcement(run, ending))
        repeat = _ask_again(connection, run, ending)
        if repeat is not None:
            announced.append(
                request_announcement(repeat, RunRequest(run.job, run.params, run.requested_by))
            )
    return True


def _ask_again(connection: Connection, run: Run, ending: Ending) -> int | None:
    """The run's repeat, which waits for its time; None if there is none."""
    if run.requested_by != SCHEDULE:
        return None
    pause_s = pause_before_repeat_s(ending.reason, run.attempt)
    if pause_s is None:
        return None
    values = {"id": run.id, "pause_s": pause_s, "within_s": limits.JOB_REPEAT_WITHIN_S}
    repeat: int | None = scalars(connection).execute(SQL["ask_again"], values).fetchone()
    return repeat


def end_announcement(run: Run, ending: Ending) -> ZoneAnnouncement:
    """Return the announcement of the end of a run."""
    attributes = {
        "job": run.job,
        "run": run.id,
        "state": ending.state,
        "verdict": ending.verdict,
        "reason": ending.reason,
    }
    return run.params.get("zone"), Announcement("job.ended", attributes)


def interrupt_lapsed(connection: Connection) -> list[Run]:
    """Mark as interrupted the runs whose runners send no heartbeats any more, and return those that
    this call marked.
    """
    connection.execute(SQL["bound_leases"], {"lease_s": limits.JOB_LEASE_S})
    found = [find(connection, id) for id in scalars(connection).execute(SQL["lapsed"]).fetchall()]
    return [run for run in found if run is not None and end(connection, run, LOST, lapsed=True)]


LOST = Ending("interrupted", "interrupted", "Its process has gone without a word.")


def cancel(connection: Connection, run: int) -> bool:
    """Cancel a waiting run at once, which the caller announces, or a running one soon. False if it
    is over, or publishes its result.
    """
    names = ("cancel_waiting", "cancel_running")
    return any(scalars(connection).execute(SQL[name], {"id": run}).fetchone() for name in names)


def delete_old_runs(connection: Connection, job: str) -> dict[int, bool]:
    """Delete the job's oldest runs; those that are kept, and whether their results are, too."""
    connection.execute(SQL["forget"], {"job": job, "kept": limits.JOB_RUNS_RETAINED})
    return dict(cursor_of(connection, _RetainedRun).execute(SQL["kept"], {"job": job}))


def drop_results(connection: Connection) -> list[DroppedResult]:
    """Note that the oldest results of all jobs are gone, beyond the bytes that are kept; the newest
    of each job stays. The caller removes the files.
    """
    values = {"bytes_max": limits.JOB_RESULTS_BYTES_MAX}
    return cursor_of(connection, DroppedResult).execute(SQL["drop_results"], values).fetchall()


def find(connection: Connection, run: int) -> Run | None:
    found = runs(connection, ids=[run])
    return found[0] if found else None


def runs(connection: Connection, **asked: Any) -> list[Run]:
    """Those of `ids`, of a `job`, `before` an id, at most `count`; the newest first. One whose
    runner has gone is shown as what it will be noted as.
    """
    gone = {f"gone_{name}": getattr(LOST, name) for name in ("state", "reason", "detail")}
    values = {"ids": None, "job": None, "before": None, "count": None, **gone, **asked}
    return cursor_of(connection, Run).execute(SQL["runs"], values).fetchall()


def newest(connection: Connection) -> list[Run]:
    """Of each job the run under way, the last one that is over, and the repeat that waits."""
    return runs(connection, ids=scalars(connection).execute(SQL["newest"]).fetchall())


@contextmanager
def _announcing(connection: Connection) -> Iterator[list[ZoneAnnouncement]]:
    """A transaction; what it leaves in the list is announced last in it, and its readers woken up
    after it.
    """
    announced: list[ZoneAnnouncement] = []
    with connection.transaction():
        yield announced
        drafts = [draft for zone, one in announced for draft in drafts_of(zone, [one])]
        places = append.append_in(connection, drafts) if drafts else []
    if places:
        append.notify(connection, {SYSTEM_STREAM_ID: places[-1].sequence})
