"""The driver process of a job: started below a guardian, with its progress and log read from its
output. Plain module.

However this process ends, the guardian then ends the driver, its JVM and its workers.
"""

import io
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from eventhub.eventlog.archive.folder import without_credentials
from eventhub.eventlog.errors import StorageFull
from sparkjobs.runs.cancellation import StopSignal
from sparkjobs.runs.failure_reason import failure_reason
from sparkjobs.runs.launch import DriverCommand

_LINE_BYTES_MAX = 64 * 1024
_LAST_LINES = 400
_COUNTS = ("stages_done", "stages", "tasks_done", "tasks")
_IDLE = "Initial job has not accepted any resources"  # Spark warns so every 15 s
_FULL = "No space left on device"  # in `OSError`s of Python workers too
_FULL_HELP = "A disk was full: that of the data folder, or of a worker of the cluster."
_WAITING = "waiting for free resources in the cluster"


class DriverProgress(NamedTuple):
    """A progress report of a driver."""

    phase: str
    counts: dict[str, int]


def drive(
    driver: DriverCommand, log: Path, stop: StopSignal, report: Callable[[DriverProgress], None]
) -> None:
    """Run a driver to its end. Raises the driver's failure, StorageFull, RunStopped."""
    command = Command("driver", driver.argv, driver.env, grace_s=limits.JOB_STOP_S)
    guarded = GuardedProcess(command, current_identity())
    last: deque[str] = deque(maxlen=_LAST_LINES)
    is_disk_full = False
    capped = _CappedLog(log)
    now = DriverProgress("starting Spark", dict.fromkeys(_COUNTS, 0))
    output = io.BufferedReader(guarded.process.stdout)  # type: ignore[type-var]
    try:
        with stop.calling(guarded.stop):
            while line := output.readline(_LINE_BYTES_MAX):
                text = _redact(line.decode(errors="replace"), driver.secrets)
                progress = _progress(text)
                if progress is not None:
                    now = progress
                    report(now)
                    continue
                is_disk_full = is_disk_full or _FULL in text
                if _IDLE in text:
                    report(now._replace(phase=f"{now.phase} ({_WAITING})"))
                capped.write(text)
                last.append(text.rstrip())
    finally:
        status = guarded.end()
        capped.close()
    stop.check()
    if status and is_disk_full:  # Java's follow-up errors do not mention the disk
        raise StorageFull(f"{_FULL_HELP} Then: {failure_reason(last, status)}")
    if status:
        raise driver.failure(failure_reason(last, status))


class _CappedLog:
    """The run's log, whose older half is deleted when it is full. A line that the disk cannot hold
    is lost and does not end the run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._bytes = self._file.tell()

    def write(self, text: str) -> None:
        line = text.encode()
        with suppress(OSError):
            if self._bytes + len(line) > limits.JOB_LOG_BYTES_MAX:
                self._halve()
            self._bytes += self._file.write(line)

    def close(self) -> None:
        self._file.close()

    def _halve(self) -> None:
        self._file.close()
        half = limits.JOB_LOG_BYTES_MAX // 2
        with self._path.open("rb") as file:
            file.seek(-min(half, self._bytes), 2)
            file.readline()
            rest = file.read()
        note = f"... {self._bytes - len(rest):,} earlier bytes were deleted ...\n".encode()
        try:
            self._path.write_bytes(note + rest)
        finally:
            self._file = self._path.open("ab", buffering=0)
            self._bytes = self._file.tell()


def _progress(text: str) -> DriverProgress | None:
    """Parse a progress report; None for a line of the log."""
    if not text.startswith('{"phase"'):
        return None
    try:
        fields: dict[str, Any] = json.loads(text)
        return DriverProgress(str(fields["phase"]), {name: int(fields[name]) for name in _COUNTS})
    except (ValueError, TypeError, KeyError):
        return None


def _redact(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return without_credentials(text)
