"""Leftovers of a killed PostgreSQL: processes and lock files. Plain module.

PostgreSQL refuses to start while the process id in a lock file belongs to any process or thread of
the machine; ids repeat, in containers soon. Only call this with the data folder's lock held: then a
process that still works in the folder has lost its supervisor and its guardian.
"""

import os
import signal
import time
from pathlib import Path

STOP_S = 5.0  # for a leftover to shut down
KILLED_S = 20.0  # for killed processes to leave the kernel, which a busy disk delays
POLL_S = 0.05
POSTMASTER = "postmaster.pid"


class LeftoverStays(OSError):
    """A process in PostgreSQL's data folder does not end, so no other server can start there."""


def clear(folder: Path, socket: Path) -> None:
    """End all processes of PostgreSQL that work in `folder`, then remove the lock files of the
    folder and of the socket, and the socket. Raises LeftoverStays, OSError.
    """
    postmaster = folder / POSTMASTER
    _end(folder.resolve(), _pid_in(postmaster))
    for path in (postmaster, socket.with_name(f"{socket.name}.lock"), socket):
        path.unlink(missing_ok=True)


def served_by(folder: Path) -> int | None:
    """Return the process id of a hub whose PostgreSQL works in `folder`, although the hub's lock
    file was removed. None if there is none, or if PostgreSQL has lost its guardian.
    """
    pid = _pid_in(folder / POSTMASTER)
    if pid is None or pid not in _workers(folder.resolve()):
        return None
    try:
        guardian = _parent(pid)
        words = Path(f"/proc/{guardian}/cmdline").read_bytes()
        return _parent(guardian) if b'{"name": "postgres"' in words else None
    except OSError:
        return None  # it has ended meanwhile


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _pid_in(lock: Path) -> int | None:
    try:
        return int(lock.read_text(errors="replace").split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _end(folder: Path, postmaster: int | None) -> None:
    """End all processes in the folder. The postmaster shuts its tree down; orphans without one are
    ended directly.
    """
    found = _workers(folder)
    for pid in found:
        if postmaster not in found or pid == postmaster:
            _signal(pid, signal.SIGINT if pid == postmaster else signal.SIGQUIT)
    if _have_ended(folder, STOP_S):
        return
    for pid in _workers(folder):
        _signal(pid, signal.SIGKILL)
    if not _have_ended(folder, KILLED_S):
        raise LeftoverStays(f"process {_workers(folder)} works in {folder} and cannot be killed")


def _have_ended(folder: Path, timeout_s: float) -> bool:
    until = time.monotonic() + timeout_s
    while _workers(folder):
        if time.monotonic() >= until:
            return False
        time.sleep(POLL_S)
    return True


def _workers(folder: Path) -> list[int]:
    """Return PostgreSQL's processes with this working folder: the postmaster and its children."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _is_worker(entry, folder)
    ]


def _is_worker(process: Path, folder: Path) -> bool:
    try:
        program = (process / "exe").readlink().name
        return program.startswith("postgres") and (process / "cwd").readlink() == folder
    except OSError:
        return False  # it has ended, is a zombie, or belongs to another user


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
