"""Builders of match indexes take turns: in one data folder one is at work, so that it costs one
core at most, and one of the workers looks for what is due. Whoever builds or verifies steps back
behind those who match. Plain module.

The lock is the kernel's (flock): a builder that is killed gives it back.
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
_LOOKED = "looked"  # an empty file; its time is that of the last look for what is due
_AUTOGROUP = Path("/proc/self/autogroup")  # niceness counts within a session only, where it is on
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "500"  # when memory ends, rather this than PostgreSQL


@contextmanager
def turn(data: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock for the block. Without `wait`: False if another builder has it. Raises
    IndexNotWritten.
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


def may_look(data: Path, now_us: int) -> bool:
    """True for one of all workers, in a while (limits.py): it is to look for what is due. Raises
    IndexNotWritten.
    """
    file = indexes_root(data) / _LOOKED
    with index_files():
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            ago_s = now_us / 1e6 - file.stat().st_mtime
            if abs(ago_s) < limits.INDEX_DUE_INTERVAL_S:  # a clock may have been set back
                return False
        file.touch()
        os.utime(file, ns=(now_us * 1_000, now_us * 1_000))
    return True


def step_back() -> None:
    """What this process takes from now on, it takes from nobody who waits."""
    os.nice(limits.INDEX_BUILD_NICENESS)
    with suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_GO)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(limits.INDEX_BUILD_NICENESS))
