"""A thread of the runner that keeps the run's lease, says how far it is and hears that it is to
end. SQL module.
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
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.rows import LOST, Ending, RunProgress

log = get_logger(__name__)
STUCK = 70  # the status of a process that ends itself
_LOST = LOST._replace(
    detail="Its lease ran out: the database was away, or the process was stopped."
)
_NO_ROOM = Ending(
    "failed",
    StorageFull.code,
    "The disk of the data folder runs low; the run ended before events had to go for it.",
)
_TOO_LONG = Ending("failed", "too_long", f"It took more than {limits.JOB_S_MAX / 3600:.0f} hours.")


class Heartbeat:
    """`heard` is what is said with the next beat; any thread may replace it. `filled`: a
    folder whose disk the run may fill; None: it writes little.
    """

    def __init__(
        self, database_url: str, run: int, stop: StopSignal, clock: Clock, filled: Path | None
    ) -> None:
        self.heard = RunProgress("beginning")
        self._url = database_url
        self._run = run
        self._stop = stop
        self._clock = clock
        self._filled = filled
        self._over = threading.Event()

    @contextmanager
    def going(self) -> Iterator[None]:
        """From the begin of the run on; until its end is noted."""
        thread = threading.Thread(target=self._beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _beat(self) -> None:
        """When the database is away, the lease counts as lost here before it does elsewhere, so
        two do not do the same job.
        """
        began_s = self._clock.monotonic_s()
        kept_s = began_s  # a moment at which the lease was surely ours
        asked_s: float | None = None
        while not self._over.wait(limits.JOB_HEARTBEAT_S):
            now_s = self._clock.monotonic_s()
            if self.say():
                kept_s = now_s
            elif now_s - kept_s > limits.JOB_LEASE_S - 2 * limits.JOB_HEARTBEAT_S:
                self._stop.ask(_LOST)
            if now_s - began_s > limits.JOB_S_MAX:
                self._stop.ask(_TOO_LONG)
            self._end_if_narrow()
            if self._stop.why is not None:
                asked_s = asked_s or now_s
                self._end_if_stuck(now_s - asked_s)

    def counts(self) -> dict[str, int]:
        """What Spark has done, as it was heard last."""
        heard = self.heard
        return {
            name: getattr(heard, name) for name in ("stages_done", "stages", "tasks_done", "tasks")
        }

    def say(self) -> bool:
        """False if it was not heard."""
        try:
            with blocking(self._url, name="job") as connection:
                cancelled = rows.heartbeat(connection, self._run, self.heard)
        except (DatabaseUnavailable, psycopg.Error) as error:
            log.warning("job_unheard", run=self._run, detail=str(error))
            return False
        if cancelled is None and not self._over.is_set():
            self._stop.ask(_LOST)
        if cancelled:
            self._stop.ask(CANCELLED)
        return True

    def _end_if_narrow(self) -> None:
        with suppress(OSError):
            if self._filled is not None and disk.measure(self._filled).narrow:
                self._stop.ask(_NO_ROOM)

    def _end_if_stuck(self, waited_s: float) -> None:
        """What does not hear that it is to end, ends with its process; so does all it started."""
        if waited_s > limits.JOB_STOPPED_S_MAX:
            log.error("job_stuck", run=self._run)
            os._exit(STUCK)
