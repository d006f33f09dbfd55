"""The rows of job runs: requested, started, renewed by heartbeats, ended. SQL module.

A run is its own lease: at most one row of a job is `running`, its runner renews it by the
database's clock, and every write of a runner requires that the row still is running.
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
from sparkjobs.runs.retry import backoff_s, longest_backoff_s

SQL = queries.load("sparkjobs/runs/sql/runs.sql")

Connection = psycopg.Connection[Any]
State = Literal["waiting", "running", "completed", "failed", "cancelled", "interrupted"]
ZoneAnnouncement = tuple[str | None, Announcement]  # None: for the whole hub
COMMAND, SCHEDULE = "command", "schedule"  # values of `requested_by` besides operators' names


class Run(NamedTuple):
    """A run as the API presents it. The model documents the columns."""

    id: int
    job: str
    state: State  # `interrupted`: its runner died or was terminated
    requested_by: str
    requested_at: datetime
    attempt: int
    retry_of: int | None
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
    result_deleted: bool

    @property
    def over(self) -> bool:
        return self.state not in ("waiting", "running")


class DroppedResult(NamedTuple):
    """A run whose result is to be deleted to make space."""

    job: str
    id: int


class _RetainedRun(NamedTuple):
    """A run, and whether its result is retained."""

    id: int
    has_result: bool


class RunProgress(NamedTuple):
    """The progress of a run."""

    phase: str
    rows_done: int = 0
    stages_done: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0
    engine: str = ""


class Ending(NamedTuple):
    """The end of a run: its state, and its result or the reason of its failure."""

    state: State
    reason: str = ""
    detail: str = ""
    verdict: str = ""
    summary: str = ""
    figures: dict[str, Any] = {}  # noqa: RUF012 - never changed
    result_bytes: int = 0


class RunRequest(NamedTuple):
    """A request for a run. `params` are validated (params.py)."""

    job: str
    params: dict[str, Any]
    requested_by: str


def request(connection: Connection, requested: RunRequest) -> int:
    """Insert a run that waits for a worker; announce it in the same transaction."""
    values = {**requested._asdict(), "params": json.dumps(requested.params)}
    [run] = scalars(connection).execute(SQL["request"], values).fetchall()
    return int(run)


def start_now(connection: Connection, requested: RunRequest) -> int | None:
    """Insert and announce a run that starts at once; None if another run of the job is running."""
    try:
        with _announcing(connection) as announced:
            run = request(connection, requested)
            _start(connection, run)
            announced.append(request_announcement(run, requested))
    except psycopg.errors.UniqueViolation:
        return None
    return run


def request_scheduled(connection: Connection, job: str) -> int | None:
    """Insert and announce a scheduled run of the whole hub; None if one is waiting already."""
    requested = RunRequest(job, {}, SCHEDULE)
    with _announcing(connection) as announced:
        values = {"job": job, "requested_by": SCHEDULE}
        if scalars(connection).execute(SQL["has_waiting"], values).fetchone():
            return None
        run = request(connection, requested)
        announced.append(request_announcement(run, requested))
    return run


def request_announcement(run: int, requested: RunRequest) -> ZoneAnnouncement:
    """Return the announcement of a requested run."""
    attributes = {"job": requested.job, "run": run}
    return requested.params.get("zone"), Announcement("job.requested", attributes)


def waiting(connection: Connection) -> list[int]:
    """Return the runs that may start now."""
    values = {"pause_s_max": longest_backoff_s()}
    return scalars(connection).execute(SQL["waiting"], values).fetchall()


def start(connection: Connection, run: int) -> bool:
    """Start a waiting run; False if it is not waiting, or another run of the job is running."""
    try:
        return _start(connection, run)
    except psycopg.errors.UniqueViolation:
        return False


def _start(connection: Connection, run: int) -> bool:
    values = {"id": run, "lease_s": limits.JOB_LEASE_S}
    return connection.execute(SQL["start"], values).fetchone() is not None


def heartbeat(connection: Connection, run: int, progress: RunProgress) -> bool | None:
    """Renew the lease and store the progress. True if cancellation was requested; None if the run
    is no longer the caller's.
    """
    values = {"id": run, "lease_s": limits.JOB_LEASE_S, **progress._asdict()}
    cancelled: bool | None = scalars(connection).execute(SQL["heartbeat"], values).fetchone()
    return cancelled


def publish(connection: Connection, run: int) -> bool:
    """Make a run uncancellable. False if it was cancelled before, or is no longer the caller's."""
    return connection.execute(SQL["publish"], {"id": run}).fetchone() is not None


def end(connection: Connection, run: Run, ending: Ending, *, lapsed: bool = False) -> bool:
    """End a running run, request its retry if one is due (retry.py), and announce both, in one
    transaction. False if it is not running, or if `lapsed` is set and its lease has not expired.
    """
    values = {**ending._asdict(), "id": run.id, "lapsed": lapsed}
    values["figures"] = json.dumps(ending.figures)
    with _announcing(connection) as announced:
        if connection.execute(SQL["end"], values).fetchone() is None:
            return False
        announced.append(end_announcement(run, ending))
        retry = _request_retry(connection, run, ending)
        if retry is not None:
            requested = RunRequest(run.job, run.params, run.requested_by)
            announced.append(request_announcement(retry, requested))
    return True


def _request_retry(connection: Connection, run: Run, ending: Ending) -> int | None:
    """Insert the retry of a scheduled run, which waits for its time; None if there is none."""
    if run.requested_by != SCHEDULE:
        return None
    pause_s = backoff_s(ending.reason, run.attempt)
    if pause_s is None:
        return None
    values = {"id": run.id, "pause_s": pause_s, "within_s": limits.JOB_RETRY_WITHIN_S}
    retry: int | None = scalars(connection).execute(SQL["request_retry"], values).fetchone()
    return retry


def end_announcement(run: Run, ending: Ending) -> ZoneAnnouncement:
    """Return the announcement of a run's end."""
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


LOST = Ending("interrupted", "interrupted", "The run's process died.")


def cancel(connection: Connection, run: int) -> bool:
    """Cancel a waiting run at once, which the caller announces, or request that of a running one.
    False if the run has ended or is publishing its result.
    """
    names = ("cancel_waiting", "cancel_running")
    return any(scalars(connection).execute(SQL[name], {"id": run}).fetchone() for name in names)


def delete_old_runs(connection: Connection, job: str) -> dict[int, bool]:
    """Delete a job's oldest runs; return the others, with whether their results are retained."""
    values = {"job": job, "retained": limits.JOB_RUNS_RETAINED}
    connection.execute(SQL["delete_old"], values)
    return dict(cursor_of(connection, _RetainedRun).execute(SQL["retained"], {"job": job}))


def drop_results(connection: Connection) -> list[DroppedResult]:
    """Mark as deleted the oldest results of all jobs beyond the retained size, except each job's
    newest. The caller deletes the files.
    """
    values = {"bytes_max": limits.JOB_RESULTS_BYTES_MAX}
    return cursor_of(connection, DroppedResult).execute(SQL["drop_results"], values).fetchall()


def find(connection: Connection, run: int) -> Run | None:
    found = runs(connection, ids=[run])
    return found[0] if found else None


def runs(connection: Connection, **selection: Any) -> list[Run]:
    """Return runs, newest first: those of `ids`, of a `job`, `before` an id, at most `count`. A run
    whose lease has expired is returned as interrupted.
    """
    lost = {f"lost_{name}": getattr(LOST, name) for name in ("state", "reason", "detail")}
    values = {"ids": None, "job": None, "before": None, "count": None, **lost, **selection}
    return cursor_of(connection, Run).execute(SQL["runs"], values).fetchall()


def newest(connection: Connection) -> list[Run]:
    """Return each job's running run, last ended run and waiting retry."""
    return runs(connection, ids=scalars(connection).execute(SQL["newest"]).fetchall())


@contextmanager
def _announcing(connection: Connection) -> Iterator[list[ZoneAnnouncement]]:
    """Open a transaction that appends the announcements left in the list last, and wake their
    readers after its commit.
    """
    announced: list[ZoneAnnouncement] = []
    with connection.transaction():
        yield announced
        drafts = [draft for zone, each in announced for draft in drafts_of(zone, [each])]
        positions = append.append_in(connection, drafts) if drafts else []
    if positions:
        append.notify(connection, {SYSTEM_STREAM_ID: positions[-1].sequence})
