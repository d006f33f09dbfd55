"""Builders of match indexes take turns: in one data folder one is at work, so that it costs one
core at most. Plain.

The lock is the kernel's (flock): a builder that is killed gives it back.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from registrations.index.place import index_root

_LOCK = "lock"


@contextmanager
def turn(data: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock for the block. Without `wait`: False if another builder has it."""
    folder = index_root(data, 0).parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
