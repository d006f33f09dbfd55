"""The data folder of a hub that was created and migrated, and has never run: made once for all
processes of a test run, and copied. A first start makes it in two seconds of processor time.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from eventhub.base import limits
from eventhub.supervisor.embedded import embedded
from tests.forked import manage

VARIABLE = "TESTS_PREPARED"  # the folder of the run, for the processes that it starts
PREFIX = "eventhub-tests-"
# of the process that made it: a hub makes its own
NOT_COPIED = ("lock", "metrics", "run", "servers.log")
_REPLACED = ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL", "EVENTHUB_SECRET_KEY")
_kept = ExitStack()


def choose_place() -> None:
    """Create the folder of the run, unless the process that started this one has; until `forget`.
    Its file `lock` is held meanwhile.
    """
    if VARIABLE not in os.environ:
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))  # sockets' names are short
        fcntl.flock(_kept.enter_context((root / "lock").open("w")), fcntl.LOCK_EX)
        _kept.callback(shutil.rmtree, root, ignore_errors=True)
        _kept.callback(os.environ.pop, VARIABLE)
        os.environ[VARIABLE] = str(root)


def forget() -> None:
    """Remove the folder, in the process that created it."""
    _kept.close()
    _made.cache_clear()


def fill(data: Path) -> bool:
    """Make a folder that is absent or empty a copy of the prepared one. Return False, with nothing
    done, outside a test run, and on a small disk, where a cluster has other files.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    small = shutil.disk_usage(data).total < limits.WAL_SMALL_DISK_BYTES
    if VARIABLE not in os.environ or small:
        return False
    subprocess.run(["cp", "-a", "--reflink=auto", f"{_made()}/.", str(data)], check=True)
    return True


@cache
def _made() -> Path:
    """Return the prepared folder, made by the first process that needs it."""
    root = Path(os.environ[VARIABLE])
    made, unfinished = root / "made", root / "new"
    with (root / "making").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            _make(unfinished)
            unfinished.rename(made)
    return made


def _make(data: Path) -> None:
    outside = {name: os.environ.pop(name) for name in _REPLACED if name in os.environ}
    try:
        with embedded(data) as env:
            words = ("migrate", "--no-input", "--skip-checks", "-v", "0")
            done = manage({**os.environ, **env}, *words)
            assert done.returncode == 0, done.stdout + done.stderr
    finally:
        os.environ.update(outside)
    for found in (data / name for name in NOT_COPIED):
        if found.is_dir() and not found.is_symlink():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)
