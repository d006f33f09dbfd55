"""The outbox on disk: one SQLite file with the queue, the dead letters and the profile. Plain
module.

One process at a time writes it; every change is on the disk when its call returns. Not
thread-safe.
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
    """The outbox refuses; the message says why and what to do."""


class OutboxBusy(OutboxError):
    """Another process has the file open."""


class OutboxFull(OutboxError):
    """The queue has reached its bound or the disk is full; nothing was queued."""


class Queued(NamedTuple):
    """A pending event: its number in the queue, and its JSON with its id."""

    number: int
    event: bytes


class DeadLetter(NamedTuple):
    """An event that the hub will never accept, and its answer."""

    number: int
    stream: str
    event: dict[str, Any]
    problem: dict[str, Any]
    dead_lettered_us: int


class OutboxFile:
    """The open file. With `read_only` it can be read while another process has it open."""

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
        """Queue events, all or none, and return their numbers. Raises OutboxFull."""
        try:
            with self._db:
                return [self._insert(stream, event) for event in events]
        except sqlite3.OperationalError as error:
            raise OutboxFull(
                f"{self.path} is full ({error}): {self.count()} events are pending. Check why the"
                " hub does not accept them, or free space on the disk."
            ) from error

    def batch(self, stream: str, events_max: int, bytes_max: int) -> list[Queued]:
        """Return the oldest events of a stream within the bounds, at least one if there is any."""
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
        """Return the streams with pending events."""
        return [name for (name,) in self._db.execute("SELECT DISTINCT stream FROM queue")]

    def remove(self, numbers: Sequence[int]) -> None:
        """Delete events that the hub has stored."""
        with self._db:
            self._db.executemany("DELETE FROM queue WHERE number = ?", [(n,) for n in numbers])

    def rewrite(self, queued: Queued) -> None:
        """Replace a pending event by the same with another id."""
        with self._db:
            self._db.execute(
                "UPDATE queue SET event = ? WHERE number = ?", (queued.event, queued.number)
            )

    def count(self) -> int:
        """Return the number of pending events."""
        return int(self._db.execute("SELECT count(*) FROM queue").fetchone()[0])

    # --- dead letters ---

    def dead_letter(self, stream: str, queued: Queued, problem: dict[str, Any]) -> DeadLetter:
        """Move an event from the queue to the dead letters."""
        dead_lettered_us = time.time_ns() // 1_000
        with self._db:
            self._db.execute("DELETE FROM queue WHERE number = ?", (queued.number,))
            self._db.execute(
                "INSERT INTO dead VALUES (?, ?, ?, ?, ?)",
                (queued.number, stream, queued.event, orjson.dumps(problem), dead_lettered_us),
            )
        return DeadLetter(
            queued.number, stream, orjson.loads(queued.event), problem, dead_lettered_us
        )

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters in the order in which they were emitted."""
        rows = self._db.execute(
            "SELECT number, stream, event, problem, died_us FROM dead ORDER BY number"
        )
        return [DeadLetter(n, s, orjson.loads(e), orjson.loads(p), at) for n, s, e, p, at in rows]

    def drop(self, number: int) -> DeadLetter | None:
        """Delete a dead letter and return it."""
        found = next((one for one in self.dead_letters() if one.number == number), None)
        with self._db:
            self._db.execute("DELETE FROM dead WHERE number = ?", (number,))
        return found

    # --- the profile ---

    def profile(self) -> Profile:
        """Return the stored profile, or an empty one."""
        row = self._db.execute("SELECT value FROM state WHERE name = 'profile'").fetchone()
        if row is None:
            return Profile()
        found = orjson.loads(row[0])
        return Profile(**{name: _tuple(value) for name, value in found.items()})

    def save_profile(self, profile: Profile) -> None:
        """Store the profile."""
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
        path.chmod(0o600)  # the events are confidential
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
    """Lock the file for the life of this process and return the lock. Raises OutboxBusy."""
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutboxError(f"{lock} cannot be written: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 32).decode(errors="replace") or "another process"
        os.close(descriptor)
        raise OutboxBusy(
            f"{path} is in use by process {owner}. One process at a time may open an outbox:"
            " stop the other one, or use another file."
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
