"""The heartbeat of a runner: a thread that renews the run's lease, reports progress and receives
cancellations. SQL module.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.eventlog.errors import StorageFull
from eventhub.eventlog.retention import disk
from eventhub.postgresql.connections import blocking
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.statements import LOST, Ending, RunProgress

log = get_logger(__name__)
STUCK = 70  # the exit status of a process that ends itself
_LEASE_EXPIRED = LOST._replace(
    detail="The run's lease expired: the database was unavailable, or the process was suspended."
)
_DISK_LOW = Ending(
    "failed",
    StorageFull.code,
    "The disk of the data folder is nearly full; the run ended before events had to be dropped.",
)
_TOO_LONG = Ending(
    "failed", "too_long", f"The run took more than {limits.JOB_S_MAX / 3600:.0f} hours."
)


class RunHeartbeat:
    """The heartbeat of one run. `progress` is reported with the next beat; any thread may replace
    it. `watched`: a folder whose disk the run may fill; None: it writes little.
    """

    def __init__(
        self, database_url: str, run: int, stop: StopSignal, clock: Clock, watched: Path | None
    ) -> None:
        self.progress = RunProgress("starting")
        self._url = database_url
        self._run = run
        self._stop = stop
        self._clock = clock
        self._watched = watched
        self._over = threading.Event()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Send heartbeats within the block: from the run's start until its end is recorded."""
        thread = threading.Thread(target=self._beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _beat(self) -> None:
        """Renew the lease until the run is over. While the database is unavailable, the lease
        counts as lost here earlier than elsewhere, so that two runners never do the same job.
        """
        started_s = self._clock.monotonic_s()
        renewed_s = started_s
        stopped_s: float | None = None
        while not self._over.wait(limits.JOB_HEARTBEAT_S):
            now_s = self._clock.monotonic_s()
            if self.send():
                renewed_s = now_s
            elif now_s - renewed_s > limits.JOB_LEASE_S - 2 * limits.JOB_HEARTBEAT_S:
                self._stop.request(_LEASE_EXPIRED)
            if now_s - started_s > limits.JOB_S_MAX:
                self._stop.request(_TOO_LONG)
            self._stop_if_disk_low()
            if self._stop.ending is not None:
                stopped_s = stopped_s or now_s
                self._exit_if_stuck(now_s - stopped_s)

    def counts(self) -> dict[str, int]:
        """Return Spark's stages and tasks as last reported."""
        progress = self.progress
        names = ("stages_done", "stages", "tasks_done", "tasks")
        return {name: getattr(progress, name) for name in names}

    def send(self) -> bool:
        """Send one heartbeat; return False if it failed."""
        try:
            with blocking(self._url, name="job") as connection:
                cancelled = statements.heartbeat(connection, self._run, self.progress)
        except (DatabaseUnavailable, psycopg.Error) as error:
            log.warning("job_heartbeat_failed", run=self._run, detail=str(error))
            return False
        if cancelled is None and not self._over.is_set():
            self._stop.request(_LEASE_EXPIRED)
        if cancelled:
            self._stop.request(CANCELLED)
        return True

    def _stop_if_disk_low(self) -> None:
        with suppress(OSError):
            if self._watched is not None and disk.measure(self._watched).is_nearly_low:
                self._stop.request(_DISK_LOW)

    def _exit_if_stuck(self, waited_s: float) -> None:
        """End this process, and so all that it started, if its work ignores the stop signal."""
        if waited_s > limits.JOB_STOPPED_S_MAX:
            log.error("job_stuck", run=self._run)
            os._exit(STUCK)
