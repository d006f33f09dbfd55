"""Watches the disk of the data folder: its free space, whether it is full, and for how long it was.
Plain module.

A full disk cannot be repaired from inside: PostgreSQL stops when it cannot write its WAL, and
dropping needs the WAL too. So the oldest segments are dropped below one threshold and emits are
refused below another, and the supervisor can release a ballast file, so that PostgreSQL starts
again (eventhub/supervisor/ballast.py). The missing part of the ballast counts as used.
"""

from pathlib import Path
from shutil import disk_usage
from typing import Literal, NamedTuple

from eventhub.base import limits

BALLAST = "ballast"  # the file's name in the data folder

State = Literal["ok", "low", "full"]


class DiskSpace(NamedTuple):
    """The space of a disk, in bytes. `free` excludes the missing part of the ballast."""

    total: int
    free: int

    @property
    def state(self) -> State:
        if self.free < spare_bytes(self.total):
            return "full"
        return "low" if self.free < low_bytes(self.total) else "ok"

    @property
    def is_nearly_low(self) -> bool:
        """Whether more data on the disk may soon force events to be dropped."""
        return self.free < limits.DISK_LOW_FACTOR * low_bytes(self.total)

    @property
    def bytes_to_free(self) -> int:
        """The bytes to free, up to a little above the low threshold; 0 above it."""
        if self.state == "ok":
            return 0
        return low_bytes(self.total) + spare_bytes(self.total) - self.free


def spare_bytes(total: int) -> int:
    """Return the free space below which nothing new is stored."""
    share = int(total * limits.DISK_SPARE_SHARE)
    return min(max(share, limits.DISK_SPARE_BYTES_MIN), limits.DISK_SPARE_BYTES_MAX)


def wal_bytes(total: int) -> int:
    """Return PostgreSQL's max_wal_size for a disk of this size."""
    return min(max(int(total * limits.WAL_DISK_SHARE), limits.WAL_BYTES_MIN), limits.WAL_BYTES_MAX)


def low_bytes(total: int) -> int:
    """Return the free space below which the oldest segments are dropped: well above the possible
    growth of the WAL.
    """
    return wal_bytes(total) + 2 * spare_bytes(total)


def ballast_bytes(total: int) -> int:
    """Return the size of the ballast for a disk of this size."""
    share = int(total * limits.BALLAST_DISK_SHARE)
    return min(max(share, limits.BALLAST_BYTES_MIN), limits.BALLAST_BYTES_MAX)


def measure(folder: Path) -> DiskSpace:
    """Return the present space of the folder's disk. Raises OSError."""
    total, _, free = disk_usage(folder)
    try:
        lacking = max(ballast_bytes(total) - (folder / BALLAST).stat().st_size, 0)
    except FileNotFoundError:
        lacking = 0  # there is no ballast here
    return DiskSpace(total, max(free - lacking, 0))


class FullPeriod(NamedTuple):
    """A time during which the disk was full, in microseconds since 1970."""

    since_us: int
    until_us: int


class Disk:
    """The state of the disk as this process knows it; `update` is called several times a second."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.space: DiskSpace | None = None
        self.full = False
        self.full_periods: list[FullPeriod] = []  # ended, and not announced yet
        self._since_us = 0

    def update(self, now_us: int) -> None:
        """Update the state. If the folder cannot be examined, keep the last one."""
        try:
            self.space = measure(self.folder)
        except OSError:
            return
        # the threshold for "not full" is half as high again, so that the state does not flap
        enough = self.space.free >= spare_bytes(self.space.total) * 3 // 2
        if not self.full and self.space.state == "full":
            self.full, self._since_us = True, now_us
        elif self.full and enough:
            self.full = False
            self.full_periods.append(FullPeriod(self._since_us, now_us))
