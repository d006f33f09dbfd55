"""The ballast: a file that reserves space on the data folder's disk, released when the disk is
full, so that PostgreSQL can start and recover. Plain module.

A full disk stops PostgreSQL, and its recovery writes too. Bytes that the file lacks count as used
space for the hub's processes (eventhub/eventlog/retention/disk.py), so they do not fill the space
that recovery needs.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage

from eventhub.base import limits
from eventhub.eventlog.retention import disk
from eventhub.supervisor.restarts import ExternalCause


class Ballast:
    """The ballast of one data folder. `say` gets a line when it is released and when it is back."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._path = folder / disk.BALLAST
        self._say = say
        self._lock = threading.Lock()

    @property
    def short(self) -> bool:
        """Whether the disk is full, or the ballast is not complete: then a failure may be due to
        lack of space.
        """
        return bool(self._lacking()) or self._free() < disk.ballast_bytes(self._total())

    def external_cause(self) -> ExternalCause | None:
        """Return the reason why a process that fails now may not be to blame: the disk is full, or
        gives errors.
        """
        try:
            return ExternalCause("the disk is full", at_once=True) if self.short else None
        except OSError as error:
            return ExternalCause(f"the disk does not answer ({error})")

    def release_if_full(self) -> None:
        """Release the ballast if the disk is full, before a start of PostgreSQL."""
        with self._lock:
            if self._size() and self._free() < disk.ballast_bytes(self._total()):
                os.truncate(self._path, 0)
                self._say("the disk is full: its ballast is released so that PostgreSQL can start")

    def allocate_if_free(self) -> None:
        """Fill the file up if enough space stays free. The file is created in any case: it shows
        that this folder has ballast.
        """
        with self._lock:
            self._path.touch(mode=0o600)
            lacking, size = self._lacking(), self._size()
            if not lacking or self._free() < lacking + 2 * disk.spare_bytes(self._total()):
                return
            if self._allocate(size, lacking):
                self._say(f"ballast of {(size + lacking) >> 20} MiB is on the disk")

    def maintain(self, stop: threading.Event) -> None:
        """Allocate it again when space is free, until `stop` is set."""
        while not stop.wait(limits.BALLAST_CHECK_INTERVAL_S):
            with suppress(OSError):
                self.allocate_if_free()

    def _allocate(self, size: int, lacking: int) -> bool:
        """Extend the file; return False, with the space released, if it was taken meanwhile."""
        with self._path.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), size, lacking)
            except OSError:
                file.truncate(size)
                return False
        return True

    def _lacking(self) -> int:
        return max(disk.ballast_bytes(self._total()) - self._size(), 0)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _total(self) -> int:
        return disk_usage(self._path.parent).total

    def _free(self) -> int:
        return disk_usage(self._path.parent).free
