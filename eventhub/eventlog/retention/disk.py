"""Watches the disk that holds the data folder: low, full, and how long it was full. Plain module.

A disk that is full cannot be mended from inside: PostgreSQL stops when it cannot write its log, and
dropping needs that log too. So three things happen before: below one mark the oldest segments go,
below another emits are refused, and a file of ballast can be given up by the supervisor, so that
PostgreSQL starts again (eventhub/supervisor/ballast.py). What the ballast lacks counts as used.
"""

import os
from pathlib import Path
from typing import Literal, NamedTuple

from eventhub.base import limits

BALLAST = "ballast"  # the file's name in the data folder

State = Literal["ok", "low", "full"]


class DiskSpace(NamedTuple):
    """Of one disk, in bytes. `free`: without what the ballast lacks."""

    total: int
    free: int

    @property
    def state(self) -> State:
        if self.free < spare_bytes(self.total):
            return "full"
        return "low" if self.free < low_bytes(self.total) else "ok"

    @property
    def narrow(self) -> bool:
        """True if what is written now may soon cost events."""
        return self.free < limits.DISK_LOW_FACTOR * low_bytes(self.total)

    @property
    def short(self) -> int:
        """So much should be freed: up to a little above the low mark; 0 above it."""
        if self.state == "ok":
            return 0
        return low_bytes(self.total) + spare_bytes(self.total) - self.free


def spare_bytes(total: int) -> int:
    """Below so much free space nothing new is stored."""
    share = int(total * limits.DISK_SPARE_SHARE)
    return min(max(share, limits.DISK_SPARE_BYTES_MIN), limits.DISK_SPARE_BYTES_MAX)


def wal_bytes(total: int) -> int:
    """PostgreSQL's max_wal_size on such a disk."""
    return min(max(int(total * limits.WAL_DISK_SHARE), limits.WAL_BYTES_MIN), limits.WAL_BYTES_MAX)


def low_bytes(total: int) -> int:
    """Below so much the oldest segments go: well above what the WAL may grow by."""
    return wal_bytes(total) + 2 * spare_bytes(total)


def ballast_bytes(total: int) -> int:
    """How large the ballast is on such a disk."""
    share = int(total * limits.BALLAST_DISK_SHARE)
    return min(max(share, limits.BALLAST_BYTES_MIN), limits.BALLAST_BYTES_MAX)


def look(folder: Path) -> DiskSpace:
    """The space of the folder's disk now. Raises OSError."""
    found = os.statvfs(folder)
    total, free = found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail
    try:
        lacking = max(ballast_bytes(total) - (folder / BALLAST).stat().st_size, 0)
    except FileNotFoundError:
        lacking = 0  # nobody keeps one here
    return DiskSpace(total, max(free - lacking, 0))


class Episode(NamedTuple):
    """A time in which nothing could be stored, in microseconds since 1970."""

    since_us: int
    until_us: int


class Disk:
    """What this process knows of the disk; `look` is called several times a second."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.space: DiskSpace | None = None
        self.full = False
        self.episodes: list[Episode] = []  # over, and not announced yet
        self._since_us = 0

    def look(self, now_us: int) -> None:
        """Look now. A folder that cannot be looked at changes nothing."""
        try:
            self.space = look(self.folder)
        except OSError:
            return
        # back only with half as much again, so that a refusal does not come and go all the time
        enough = self.space.free >= spare_bytes(self.space.total) * 3 // 2
        if not self.full and self.space.state == "full":
            self.full, self._since_us = True, now_us
        elif self.full and enough:
            self.full = False
            self.episodes.append(Episode(self._since_us, now_us))
