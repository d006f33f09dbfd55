"""Building match indexes as a job of a worker: a process of its own builds each, so that it takes
neither memory nor turns from what else the worker does, and can be ended at any moment.
SQL module.
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
from registrations.match_index.builds import rows
from registrations.match_index.builds.turn import may_look, turn
from registrations.match_index.epochs.errors import IndexNotWritten
from registrations.match_index.epochs.state import due_streams

log = get_logger(__name__)
throttled = ThrottledLog(log)
BUSY = "busy"
BUILT = "built"
TOO_LONG = "too_long"
PROCESS = "process"


class Report(NamedTuple):
    """What the process says at its end, as a line of JSON. `outcome`: `built`, `busy` (another
    builder is at work), or why it failed, an error's code.
    """

    outcome: str
    seconds: float = 0.0
    registrations: int = 0

    def line(self) -> str:
        return json.dumps(self._asdict())


class IndexJob:
    """Builds what is asked for and what is due, one after the other. One run at a time in this
    process; among processes the builders take turns (turn.py).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._child = ChildProcess()
        self._looked_s = float("-inf")  # for what is due, in a folder that cannot be written
        self._stream: rows.Stream | None = None  # whose index is being built

    def at_work(self) -> dict[str, Any]:
        """For people: the stream whose index is being built."""
        stream = self._stream
        return {} if stream is None else {"zone": stream.zone, "stream": stream.name}

    def run(self, database_url: str, data: Path) -> None:
        """Returns at once if a run is under way, and soon after `stop`."""
        with self._child.exclusive() as ours:
            if not ours:
                return
            try:
                while _is_free(data) and (wanted := self._wanted(database_url, data)):
                    if not self._build_all(database_url, wanted):
                        break
            except IndexNotWritten as error:
                self._refuse(database_url, data, error)
            except DatabaseUnavailable as error:
                throttled.info("index_builds_postponed", reason=error.code)

    def stop(self) -> None:
        """End the process, if there is one; the epoch before stays in force."""
        self._child.stop()

    def _build_all(self, database_url: str, streams: list[int]) -> bool:
        """False if another builder is at work, or this one was told to end."""
        return all(
            not self._child.is_stopped and self._build(database_url, stream_id)
            for stream_id in streams
        )

    def _refuse(self, database_url: str, data: Path, error: IndexNotWritten) -> None:
        """The folder cannot be used, so each build that is asked for or due has failed for it."""
        now_s = self._clock.monotonic_s()
        is_due = now_s - self._looked_s >= limits.INDEX_DUE_INTERVAL_S
        try:
            with blocking(database_url, name="index builder") as connection:
                found = dict.fromkeys(rows.asked(connection))
                if is_due:
                    self._looked_s = now_s
                    found.update(dict.fromkeys(due_streams(connection, data)))
                later = rows.later(connection) if found else set()
                for stream_id in found.keys() - later:
                    log.warning(
                        "index_not_built", stream=stream_id, reason=error.code, detail=error.message
                    )
                    rows.fail(connection, stream_id, error.code, type(error)().message)
                    metrics.INDEX_BUILDS.labels(outcome=error.code).inc()
        except DatabaseUnavailable as away:
            throttled.info("index_builds_postponed", reason=away.code)

    def _wanted(self, database_url: str, data: Path) -> list[int]:
        """What is asked for, first; what is due is looked for less often and by one worker of all,
        because it is counted.
        """
        with blocking(database_url, name="index builder") as connection:
            found = dict.fromkeys(rows.asked(connection))
            if may_look(data, self._clock.now_us()):
                found.update(dict.fromkeys(due_streams(connection, data)))
            later = rows.later(connection) if found else set()
        return [stream_id for stream_id in found if stream_id not in later]

    def _build(self, database_url: str, stream_id: int) -> bool:
        """False if another builder is at work, or this one was told to end."""
        with blocking(database_url, name="index builder") as connection:
            self._stream = next(iter(rows.streams(connection, [stream_id])), None)
        told, status = self._ended(stream_id)
        self._stream = None
        if self._child.is_stopped and not told:
            return False
        report = Report(**json.loads(told)) if told else _died(database_url, stream_id, status)
        if report.outcome == BUSY:
            return False
        metrics.INDEX_BUILDS.labels(outcome=report.outcome).inc()
        if report.outcome == BUILT:
            metrics.INDEX_BUILD_S.observe(report.seconds)
        return True

    def _ended(self, stream_id: int) -> tuple[str, int]:
        """What the builder's process said, and its status."""
        with self._child.started("registrations.match_index.builds", str(stream_id)) as process:
            told, _ = process.communicate()
        return told, process.returncode


def _is_free(data: Path) -> bool:
    """False if a builder is at work, of another worker or by hand."""
    with turn(data, wait=False) as ours:
        return ours


def _died(database_url: str, stream_id: int, status: int) -> Report:
    """The process ended without a report: it took too long, or was killed."""
    outcome, detail = PROCESS, f"The builder's process ended with {status}."
    if status == -signal.SIGALRM:
        outcome, detail = TOO_LONG, f"It was ended after {limits.INDEX_BUILD_S_MAX:,} s."
    log.warning("index_builder_died", stream=stream_id, status=status)
    with blocking(database_url, name="index builder") as connection:
        rows.fail(connection, stream_id, outcome, detail)
    return Report(outcome)
