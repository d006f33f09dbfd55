"""Runs a job's driver below a guardian: reads what it says, keeps its log, and ends it. Plain.

However this process ends, the guardian notices, and ends the driver, its JVM and its workers.
"""

import io
import json
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from eventhub import limits
from eventhub.guarded import Command, Guarded, ordinary
from eventhub.jobs.errors import SparkFailed
from eventhub.jobs.launch import Launch
from eventhub.jobs.stopping import Stop

_LINE_BYTES_MAX = 64 * 1024
_LAST_LINES = 400
_COUNTS = ("stages_done", "stages", "tasks_done", "tasks")
_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Failure|Unreadable)\w*): (.+)")
_PATH = re.compile(r"(?<![\w:/.])(?:file:)?(?:/+[\w.@+=,%-]+){2,}")
_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")
_JAVA = ("SparkException", "Py4JJavaError", "SparkUserAppException")  # say that, and not why


class Said(NamedTuple):
    """A driver's word of how far it is."""

    phase: str
    counts: dict[str, int]


def drive(launch: Launch, log: Path, stop: Stop, hear: Callable[[Said], None]) -> None:
    """Until it has ended. Raises SparkFailed, Stopped."""
    command = Command("driver", launch.argv, launch.env, grace_s=limits.JOB_STOP_S)
    guarded = Guarded(command, ordinary())
    last: deque[str] = deque(maxlen=_LAST_LINES)
    kept = _Log(log)
    output = io.BufferedReader(guarded.process.stdout)  # type: ignore[type-var]
    try:
        with stop.ending(guarded.stop):
            while line := output.readline(_LINE_BYTES_MAX):
                text = _without(line.decode(errors="replace"), launch.secrets)
                said = _said(text)
                if said is not None:
                    hear(said)
                    continue
                kept.write(text)
                last.append(text.rstrip())
    finally:
        status = guarded.end()
        kept.close()
    stop.check()
    if status:
        raise SparkFailed(_detail(list(last), status))


class _Log:
    """The run's log, whose older half goes when it is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab")
        self._bytes = self._file.tell()

    def write(self, text: str) -> None:
        line = text.encode()
        if self._bytes + len(line) > limits.JOB_LOG_BYTES_MAX:
            self._halve()
        self._file.write(line)
        self._file.flush()
        self._bytes += len(line)

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
        self._path.write_bytes(note + kept)
        self._file = self._path.open("ab")
        self._bytes = len(note) + len(kept)


def _said(text: str) -> Said | None:
    """None for a line of the log."""
    if not text.startswith('{"phase"'):
        return None
    try:
        fields: dict[str, Any] = json.loads(text)
        return Said(str(fields["phase"]), {name: int(fields[name]) for name in _COUNTS})
    except (ValueError, TypeError, KeyError):
        return None


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _detail(lines: list[str], status: int) -> str:
    """Why it failed, in its own last words: the error that was told last, without the places of
    files, else the last line.
    """
    errors = [match for line in lines if (match := _ERROR.match(line))]
    told = [match for match in errors if match[1] not in _JAVA] or errors
    if told:
        found = f"{told[-1][1]}: {told[-1][2]}"
    else:
        written = [line for line in lines if line.strip()]
        found = written[-1] if written else "It said nothing."
    return f"{_shown(found)[: limits.JOB_DETAIL_CHARS_MAX]} (status {status})"


def _shown(text: str) -> str:
    """Without folders and credentials: of a path its last name."""
    text = _CREDENTIALS.sub(r"\1", text.replace("\0", ""))
    return _PATH.sub(lambda match: match[0].rpartition("/")[2], text)
