"""Runs of jobs as a task of a worker: a process of its own does each, so that it takes neither
memory nor turns from what else the worker does. SQL module.
"""

from typing import Any

from eventhub.base import metrics
from eventhub.base.child import ChildProcess
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import blocking
from sparkjobs.runs import rows
from sparkjobs.runs.rows import Run

log = get_logger(__name__)
throttled = ThrottledLog(log)


class RunJob:
    """Does what waits, one run after the other, and one at a time in this process. Of one job one
    run is under way in the whole hub (rows.py).
    """

    def __init__(self) -> None:
        self._child = ChildProcess()
        self._run: Run | None = None  # under way

    def at_work(self) -> dict[str, Any]:
        """For people: the run that is under way."""
        run = self._run
        return {} if run is None else {"run": run.id, "job": run.job}

    def run(self, database_url: str) -> None:
        """Returns at once if a run is under way here, and soon after `stop`."""
        with self._child.exclusive() as ours:
            if not ours:
                return
            try:
                self._perform_all(database_url)
            except DatabaseUnavailable as error:
                throttled.info("jobs_postponed", reason=error.code)

    def stop(self) -> None:
        """End the run's process, if there is one; the run is noted as interrupted."""
        self._child.stop()

    def _perform_all(self, database_url: str) -> None:
        """Also what is asked for meanwhile: a word of it came while this process was at work."""
        tried: set[int] = set()
        while found := set(_waiting(database_url)) - tried:
            for run in sorted(found):
                if self._child.is_stopped:
                    return
                self._perform(database_url, run)
            tried |= found

    def _perform(self, database_url: str, run: int) -> None:
        """A process that dies without a word leaves a lease, which runs out."""
        with blocking(database_url, name="jobs") as connection:
            self._run = rows.find(connection, run)
        with self._child.started("sparkjobs.runs", str(run)) as process:
            process.communicate()
        if process.returncode and not self._child.is_stopped:
            log.warning("job_died", run=run, status=process.returncode)
        self._run = None
        with blocking(database_url, name="jobs") as connection:
            found = rows.find(connection, run)
        if found is not None and found.over:
            _count(found)


def _waiting(database_url: str) -> list[int]:
    """The runs that may begin, after those whose runner has gone were ended."""
    with blocking(database_url, name="jobs") as connection:
        gone = rows.interrupt_lapsed(connection)
        waiting = rows.waiting(connection)
    for lapsed in gone:
        _count(lapsed)
    return waiting


def request_scheduled_run(database_url: str, job: str) -> None:
    """Ask for a run of the whole hub, unless one of the timetable waits already. Raises
    DatabaseUnavailable.
    """
    with blocking(database_url, name="jobs") as connection:
        rows.request_scheduled(connection, job)


def _count(run: Run) -> None:
    outcome = run.verdict if run.verdict == "problems" else run.state
    metrics.JOB_RUNS.labels(job=run.job, outcome=outcome).inc()
    if run.state == "completed" and run.ended_at and run.started_at:
        took = run.ended_at - run.started_at
        metrics.JOB_RUN_S.labels(job=run.job).observe(took.total_seconds())
