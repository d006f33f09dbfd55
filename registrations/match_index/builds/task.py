"""The worker's task that builds match indexes, each in a child process, which takes neither memory
nor time from the worker and can be ended at any time. SQL module.
"""

import json
import signal
from pathlib import Path
from typing import Any, NamedTuple

from eventhub.base import limits, metrics
from eventhub.base.child import ChildProcess
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import blocking
from registrations.match_index.builds import statements
from registrations.match_index.builds.builder_lock import builder_lock, claim_due_check
from registrations.match_index.epochs.errors import IndexNotWritten
from registrations.match_index.epochs.folder import indexed
from registrations.match_index.epochs.state import due_streams
from registrations.stream_deletion import erase_index

log = get_logger(__name__)
throttled = ThrottledLog(log)
BUSY = "busy"
BUILT = "built"
TOO_LONG = "too_long"
PROCESS = "process"


class BuildReport(NamedTuple):
    """The result of a builder's process, as a line of JSON. `outcome`: `built`, `busy` (another
    builder is running), or the error code of a failure.
    """

    outcome: str
    seconds: float = 0.0
    registrations: int = 0

    def line(self) -> str:
        return json.dumps(self._asdict())


class IndexBuilder:
    """The requested and due builds, run one after the other. One run at a time in this process;
    among processes a lock admits one builder (builder_lock.py).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._child = ChildProcess()
        self._looked_s = float("-inf")  # last search for due builds while the folder is unusable
        self._stream: statements.IndexStream | None = None  # whose index is being built

    def at_work(self) -> dict[str, Any]:
        """Return the stream whose index is being built, for people."""
        stream = self._stream
        return {} if stream is None else {"zone": stream.zone, "stream": stream.name}

    def run(self, database_url: str, data: Path) -> None:
        """Run builds. Return at once if another run is active, and soon after `stop`."""
        with self._child.exclusive() as ours:
            if not ours:
                return
            try:
                while _is_free(data) and (streams := self._due(database_url, data)):
                    if not self._build_all(database_url, streams):
                        break
            except IndexNotWritten as error:
                self._refuse(database_url, data, error)
            except DatabaseUnavailable as error:
                throttled.info("index_builds_postponed", reason=error.code)

    def stop(self) -> None:
        """End the builder's process, if there is one; the current epoch remains in use."""
        self._child.stop()

    def _build_all(self, database_url: str, streams: list[int]) -> bool:
        """Build indexes; return False if another builder is running, or after `stop`."""
        return all(
            not self._child.is_stopped and self._build(database_url, stream_id)
            for stream_id in streams
        )

    def _refuse(self, database_url: str, data: Path, error: IndexNotWritten) -> None:
        """Record a failure of each requested or due build, because the folder is unusable."""
        now_s = self._clock.monotonic_s()
        is_due = now_s - self._looked_s >= limits.INDEX_DUE_INTERVAL_S
        try:
            with blocking(database_url, name="index builder") as connection:
                found = dict.fromkeys(statements.requested(connection))
                if is_due:
                    self._looked_s = now_s
                    found.update(dict.fromkeys(due_streams(connection, data)))
                later = statements.backing_off(connection) if found else set()
                for stream_id in found.keys() - later:
                    log.warning(
                        "index_not_built", stream=stream_id, reason=error.code, detail=error.message
                    )
                    statements.fail(connection, stream_id, error.code, type(error)().message)
                    metrics.INDEX_BUILDS.labels(outcome=error.code).inc()
        except DatabaseUnavailable as away:
            throttled.info("index_builds_postponed", reason=away.code)

    def _due(self, database_url: str, data: Path) -> list[int]:
        """Return the streams to build: requested ones first, then due ones, which only one worker
        searches, and less often, because that counts versions. It also removes the indexes of
        streams that were deleted by a worker with another data folder.
        """
        with blocking(database_url, name="index builder") as connection:
            found = dict.fromkeys(statements.requested(connection))
            if claim_due_check(data, self._clock.now_us()):
                for stream_id in statements.erased(connection, indexed(data)):
                    erase_index(data, stream_id)
                found.update(dict.fromkeys(due_streams(connection, data)))
            later = statements.backing_off(connection) if found else set()
        return [stream_id for stream_id in found if stream_id not in later]

    def _build(self, database_url: str, stream_id: int) -> bool:
        """Build an index; return False if another builder is running, or after `stop`."""
        with blocking(database_url, name="index builder") as connection:
            self._stream = next(iter(statements.streams(connection, [stream_id])), None)
        output, status = self._ended(stream_id)
        self._stream = None
        if self._child.is_stopped and not output:
            return False
        report = (
            BuildReport(**json.loads(output)) if output else _died(database_url, stream_id, status)
        )
        if report.outcome == BUSY:
            return False
        metrics.INDEX_BUILDS.labels(outcome=report.outcome).inc()
        if report.outcome == BUILT:
            metrics.INDEX_BUILD_S.observe(report.seconds)
        return True

    def _ended(self, stream_id: int) -> tuple[str, int]:
        """Run the builder's process; return its output and exit status."""
        with self._child.started("registrations.match_index.builds", str(stream_id)) as process:
            output, _ = process.communicate()
        return output, process.returncode


def _is_free(data: Path) -> bool:
    """Return whether no builder is running, of another worker or started manually."""
    with builder_lock(data, wait=False) as ours:
        return ours


def _died(database_url: str, stream_id: int, status: int) -> BuildReport:
    """Report a process that ended without a result: it took too long, or was killed."""
    outcome, detail = PROCESS, f"The builder's process ended with {status}."
    if status == -signal.SIGALRM:
        outcome, detail = TOO_LONG, f"The build timed out after {limits.INDEX_BUILD_S_MAX:,} s."
    log.warning("index_builder_died", stream=stream_id, status=status)
    with blocking(database_url, name="index builder") as connection:
        statements.fail(connection, stream_id, outcome, detail)
    return BuildReport(outcome)
