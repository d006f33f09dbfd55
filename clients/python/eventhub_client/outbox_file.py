"""The outbox on disk: one SQLite file with the queue, the dead and the profile. Plain module.

Written by one process at a time; every change is on the disk when its call returns. Not for several
threads at once.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from eventhub.base import limits
from eventhub_client.profile import Profile

FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queue (
    number INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, event BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS queue_by_stream ON queue (stream, number);
CREATE TABLE IF NOT EXISTS dead (
    number INTEGER PRIMARY KEY, stream TEXT NOT NULL, event BLOB NOT NULL, problem BLOB NOT NULL,
    died_us INTEGER NOT NULL
);
"""


class OutboxError(Exception):
    """The outbox cannot do this; the message says why and what to do."""


class OutboxBusy(OutboxError):
    """Another process has the file."""


class OutboxFull(OutboxError):
    """The queue has reached its bound, or the disk is full; nothing was queued."""


class Queued(NamedTuple):
    """An event that waits: its number in the queue, and its JSON with its id."""

    number: int
    event: bytes


class DeadLetter(NamedTuple):
    """An event that the hub will never take, and its answer."""

    number: int
    stream: str
    event: dict[str, Any]
    problem: dict[str, Any]
    died_us: int


class OutboxFile:
    """`read_only` looks on while another process has the file."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._lock = -1 if read_only else _locked(path)
        try:
            self._db = _opened(path, read_only=read_only)
        except sqlite3.Error as error:
            self._unlock()
            raise OutboxError(f"{path} is no outbox that can be opened: {error}.") from error

    def close(self) -> None:
        self._db.close()
        self._unlock()

    # --- the queue ---

    def put(self, stream: str, events: Sequence[bytes]) -> list[int]:
        """Queue events, all or none; their numbers. Raises OutboxFull."""
        try:
            with self._db:
                return [self._insert(stream, event) for event in events]
        except sqlite3.OperationalError as error:
            raise OutboxFull(
                f"{self.path} takes no more ({error}): {self.count()} events wait. See why the hub"
                " does not take them, or make room on the disk."
            ) from error

    def batch(self, stream: str, events_max: int, bytes_max: int) -> list[Queued]:
        """The oldest events of a stream, at least one if there is any."""
        rows = self._db.execute(
            "SELECT number, event FROM queue WHERE stream = ? ORDER BY number LIMIT ?",
            (stream, events_max),
        )
        found: list[Queued] = []
        size = 0
        for number, event in rows:
            size += len(event)
            if found and size > bytes_max:
                break
            found.append(Queued(number, event))
        return found

    def streams(self) -> list[str]:
        """Those for which events wait."""
        return [name for (name,) in self._db.execute("SELECT DISTINCT stream FROM queue")]

    def remove(self, numbers: Sequence[int]) -> None:
        """They are stored."""
        with self._db:
            self._db.executemany("DELETE FROM queue WHERE number = ?", [(n,) for n in numbers])

    def rewrite(self, queued: Queued) -> None:
        """Give a waiting event another id, in its place."""
        with self._db:
            self._db.execute(
                "UPDATE queue SET event = ? WHERE number = ?", (queued.event, queued.number)
            )

    def count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM queue").fetchone()[0])

    # --- the dead ---

    def bury(self, stream: str, queued: Queued, problem: dict[str, Any]) -> DeadLetter:
        """Take an event out of the queue for good."""
        died_us = time.time_ns() // 1_000
        with self._db:
            self._db.execute("DELETE FROM queue WHERE number = ?", (queued.number,))
            self._db.execute(
                "INSERT INTO dead VALUES (?, ?, ?, ?, ?)",
                (queued.number, stream, queued.event, orjson.dumps(problem), died_us),
            )
        return DeadLetter(queued.number, stream, orjson.loads(queued.event), problem, died_us)

    def dead(self) -> list[DeadLetter]:
        """In the order in which they were emitted."""
        rows = self._db.execute(
            "SELECT number, stream, event, problem, died_us FROM dead ORDER BY number"
        )
        return [DeadLetter(n, s, orjson.loads(e), orjson.loads(p), at) for n, s, e, p, at in rows]

    def forget(self, number: int) -> DeadLetter | None:
        """Remove one of the dead; what it was."""
        found = next((dead for dead in self.dead() if dead.number == number), None)
        with self._db:
            self._db.execute("DELETE FROM dead WHERE number = ?", (number,))
        return found

    # --- the profile ---

    def profile(self) -> Profile:
        row = self._db.execute("SELECT value FROM state WHERE name = 'profile'").fetchone()
        if row is None:
            return Profile()
        found = orjson.loads(row[0])
        return Profile(**{name: _tuple(value) for name, value in found.items()})

    def keep(self, profile: Profile) -> None:
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO state VALUES ('profile', ?)",
                (orjson.dumps(profile._asdict()),),
            )

    def _insert(self, stream: str, event: bytes) -> int:
        row = self._db.execute("INSERT INTO queue (stream, event) VALUES (?, ?)", (stream, event))
        return int(row.lastrowid or 0)

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _opened(path: Path, *, read_only: bool) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, check_same_thread=False)
    db.execute("PRAGMA busy_timeout = 5000")
    if not read_only:
        path.chmod(0o600)  # it holds what the hub lets few see
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")  # in WAL mode: fsync at every commit
        size = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {limits.OUTBOX_BYTES_MAX // size}")
        db.executescript(_SCHEMA)
        db.execute("INSERT OR IGNORE INTO state VALUES ('format', ?)", (FORMAT,))
        db.commit()
    found = db.execute("SELECT value FROM state WHERE name = 'format'").fetchone()[0]
    if found != FORMAT:
        db.close()
        raise OutboxError(f"{path} has the format {found}; this version reads {FORMAT}.")
    return db


def _locked(path: Path) -> int:
    """The lock of the file beside it, held as long as this process lives. Raises OutboxBusy."""
    beside = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutboxError(f"{beside} cannot be written: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 32).decode(errors="replace") or "another process"
        os.close(descriptor)
        raise OutboxBusy(
            f"{path} is in use by process {owner}. One process at a time may have an outbox: end"
            " the other one, or give this one a file of its own."
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
