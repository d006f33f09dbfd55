"""The worker task that performs job runs, each in a process of its own, so that a run takes neither
memory nor time from the worker's other tasks. SQL module.
"""

from typing import Any

from eventhub.base import metrics
from eventhub.base.child import ChildProcess
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import blocking
from sparkjobs.runs import statements
from sparkjobs.runs.statements import Run

log = get_logger(__name__)
throttled = ThrottledLog(log)


class RunPerformer:
    """Performs waiting runs, one at a time in this process; of each job, one in the whole hub."""

    def __init__(self) -> None:
        self._child = ChildProcess()
        self._run: Run | None = None  # the running one

    def at_work(self) -> dict[str, Any]:
        """Describe the running run."""
        run = self._run
        return {} if run is None else {"run": run.id, "job": run.job}

    def run(self, database_url: str) -> None:
        """Perform waiting runs; return at once if a run is running here, and soon after `stop`."""
        with self._child.exclusive() as ours:
            if not ours:
                return
            try:
                self._perform_all(database_url)
            except DatabaseUnavailable as error:
                throttled.info("jobs_postponed", reason=error.code)

    def stop(self) -> None:
        """End the run's process, if there is one; the run becomes interrupted."""
        self._child.stop()

    def _perform_all(self, database_url: str) -> None:
        """Perform waiting runs, including those requested meanwhile, whose wake-ups were missed."""
        attempted: set[int] = set()
        while found := set(_waiting(database_url)) - attempted:
            for run in sorted(found):
                if self._child.is_stopped:
                    return
                self._perform(database_url, run)
            attempted |= found

    def _perform(self, database_url: str, run: int) -> None:
        """Perform a run in a process; the lease of one that dies expires."""
        with blocking(database_url, name="jobs") as connection:
            self._run = statements.find(connection, run)
        with self._child.started("sparkjobs.runs", str(run)) as process:
            process.communicate()
        if process.returncode and not self._child.is_stopped:
            log.warning("job_process_died", run=run, status=process.returncode)
        self._run = None
        with blocking(database_url, name="jobs") as connection:
            found = statements.find(connection, run)
        if found is not None and found.over:
            _count(found)


def _waiting(database_url: str) -> list[int]:
    """End the runs whose lease has expired, and return those that may start."""
    with blocking(database_url, name="jobs") as connection:
        lapsed = statements.interrupt_lapsed(connection)
        waiting = statements.waiting(connection)
    for run in lapsed:
        _count(run)
    return waiting


def request_scheduled_run(database_url: str, job: str) -> None:
    """Request a run of the whole hub, unless a scheduled one is waiting. Raises
    DatabaseUnavailable.
    """
    with blocking(database_url, name="jobs") as connection:
        statements.request_scheduled(connection, job)


def _count(run: Run) -> None:
    outcome = run.verdict if run.verdict == "problems" else run.state
    metrics.JOB_RUNS.labels(job=run.job, outcome=outcome).inc()
    if run.state == "completed" and run.ended_at and run.started_at:
        took = run.ended_at - run.started_at
        metrics.JOB_RUN_S.labels(job=run.job).observe(took.total_seconds())
