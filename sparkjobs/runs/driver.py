"""Runs a job's driver below a guardian: reads what it says, keeps its log, and ends it.
Plain module.

However this process ends, the guardian notices, and ends the driver, its JVM and its workers.
"""

import io
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.guarded import Command, Guarded, current_identity
from eventhub.eventlog.archive.folder import without_credentials
from eventhub.eventlog.errors import StorageFull
from sparkjobs.runs.cancellation import StopSignal
from sparkjobs.runs.errors import SparkFailed
from sparkjobs.runs.failure_reason import why_failed
from sparkjobs.runs.launch import DriverCommand

_LINE_BYTES_MAX = 64 * 1024
_LAST_LINES = 400
_COUNTS = ("stages_done", "stages", "tasks_done", "tasks")
_IDLE = "Initial job has not accepted any resources"  # Spark warns so every 15 s
_FULL = "No space left on device"  # also of the `OSError` of a worker in Python
_FULL_HELP = "A disk was full: that of the data folder, or of a worker of the cluster."
_WAITING = "waiting: no worker of the cluster has room for it"


class DriverProgress(NamedTuple):
    """A driver's word of how far it is."""

    phase: str
    counts: dict[str, int]


def drive(
    launch: DriverCommand, log: Path, stop: StopSignal, hear: Callable[[DriverProgress], None]
) -> None:
    """Until it has ended. Raises SparkFailed, StorageFull, Stopped."""
    command = Command("driver", launch.argv, launch.env, grace_s=limits.JOB_STOP_S)
    guarded = Guarded(command, current_identity())
    last: deque[str] = deque(maxlen=_LAST_LINES)
    is_disk_full = False
    kept = _CappedLog(log)
    now = DriverProgress("starting Spark", dict.fromkeys(_COUNTS, 0))
    output = io.BufferedReader(guarded.process.stdout)  # type: ignore[type-var]
    try:
        with stop.ending(guarded.stop):
            while line := output.readline(_LINE_BYTES_MAX):
                text = _without(line.decode(errors="replace"), launch.secrets)
                said = _said(text)
                if said is not None:
                    now = said
                    hear(now)
                    continue
                is_disk_full = is_disk_full or _FULL in text
                if _IDLE in text:
                    hear(now._replace(phase=f"{now.phase} ({_WAITING})"))
                kept.write(text)
                last.append(text.rstrip())
    finally:
        status = guarded.end()
        kept.close()
    stop.check()
    if status and is_disk_full:  # what Java makes of it says nothing to people
        raise StorageFull(f"{_FULL_HELP} Then: {why_failed(last, status)}")
    if status:
        raise SparkFailed(why_failed(last, status))


class _CappedLog:
    """The run's log, whose older half goes when it is full; no line for which the disk has no room
    ends the run.
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
            kept = file.read()
        note = f"... {self._bytes - len(kept):,} bytes before this are left out ...\n".encode()
        try:
            self._path.write_bytes(note + kept)
        finally:
            self._file = self._path.open("ab", buffering=0)
            self._bytes = self._file.tell()


def _said(text: str) -> DriverProgress | None:
    """None for a line of the log."""
    if not text.startswith('{"phase"'):
        return None
    try:
        fields: dict[str, Any] = json.loads(text)
        return DriverProgress(str(fields["phase"]), {name: int(fields[name]) for name in _COUNTS})
    except (ValueError, TypeError, KeyError):
        return None


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return without_credentials(text)
