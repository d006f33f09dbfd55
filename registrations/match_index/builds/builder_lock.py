"""The lock of builders of match indexes: in one data folder one builder runs at a time, so that it
takes at most one core, and one of the workers searches for due builds. Processes that build or
verify lower their priority. Plain module.

The lock is the kernel's (flock): the death of a builder releases it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eventhub.base import limits
from registrations.match_index.epochs.errors import index_files
from registrations.match_index.epochs.folder import indexes_root

_LOCK = "lock"
_DUE_CHECKED = "due-checked"  # an empty file; its time is that of the last search for due builds
_AUTOGROUP = Path("/proc/self/autogroup")  # if it is on, niceness counts within a session only
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_OOM_PREFERRED = "500"  # out of memory, kill this process rather than PostgreSQL


@contextmanager
def builder_lock(data: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock during the block. Without `wait`, yield False if another builder holds it.
    Raises IndexNotWritten.
    """
    folder = indexes_root(data)
    with index_files():
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a")
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def claim_due_check(data: Path, now_us: int) -> bool:
    """Return True to one of all workers per interval (limits.py), which then searches for due
    builds. Raises IndexNotWritten.
    """
    file = indexes_root(data) / _DUE_CHECKED
    with index_files():
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            ago_s = now_us / 1e6 - file.stat().st_mtime
            if abs(ago_s) < limits.INDEX_DUE_INTERVAL_S:  # a clock may have been set back
                return False
        file.touch()
        os.utime(file, ns=(now_us * 1_000, now_us * 1_000))
    return True


def lower_priority() -> None:
    """Lower the priority of this process, so that it delays no others."""
    os.nice(limits.INDEX_BUILD_NICENESS)
    with suppress(OSError):
        _OOM_SCORE.write_text(_OOM_PREFERRED)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(limits.INDEX_BUILD_NICENESS))
