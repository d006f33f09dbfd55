"""Other load of a machine: it is busy, and process ids that the hub wrote down are given to
others.
"""

import ctypes
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eventhub.supervisor.leftovers import POSTMASTER
from eventhub.supervisor.postgres import SOCKET

BURN = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
CLONE3 = 435  # of every architecture


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Compute in so many processes; wait until the load is at least that high."""
    words = [sys.executable, "-I", "-S", "-c", BURN, str(os.getpid())]
    burning = [subprocess.Popen(words) for _ in range(processes)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
        for process in burning:
            process.wait()


@contextmanager
def occupied(data: Path) -> Iterator[list[str]]:
    """Give the process ids that the stopped hub wrote into files to other processes: to a process
    with really that id, or, where the system does not permit the choice, write the id of one of our
    threads into the file. Yield a description per file.
    """
    run, postgres = data / "run", data / "postgres"
    with ExitStack() as stack:
        done = []
        for file in (data / "lock", postgres / POSTMASTER, run / f"{SOCKET}.lock"):
            found = _id_in(file)
            if found is not None:
                done.append(f"{file.name}: {stack.enter_context(_taken(file, found))}")
        yield done


def _id_in(file: Path) -> int | None:
    try:
        return int(file.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


@contextmanager
def _taken(file: Path, id: int) -> Iterator[str]:
    if Path(f"/proc/{id}").exists():  # the hub's own, which is still there, or for another file
        yield "taken already"
        return
    words = [sys.executable, "-m", "tests.chaos.starts.ids", str(id)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as helper:
        try:
            assert helper.stdout is not None
            if helper.stdout.readline():
                yield "a process"
            else:
                with a_thread() as other:
                    rest = file.read_text().split("\n", 1)[1]
                    file.write_text(f"{other}\n{rest}")
                    yield "a thread"
        finally:
            helper.kill()


@contextmanager
def a_thread() -> Iterator[int]:
    """Yield the id of a thread of this process, which is no process's."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        yield thread.native_id or 0
    finally:
        over.set()
        thread.join()


def become(expected: int) -> None:
    """Start a child with that id, which ends with this process; print it, and wait. Raise
    OSError.
    """
    ids = (ctypes.c_int * 1)(expected)
    words = struct.pack("11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(ids), 1, 0)
    libc = ctypes.PyDLL(None, use_errno=True)  # it keeps the interpreter's lock, for the child
    parent = os.getpid()
    made = libc.syscall(CLONE3, ctypes.create_string_buffer(words, len(words)), len(words))
    if made == 0:
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", WAIT, str(parent)])
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    sys.stdout.write(f"{made}\n")
    sys.stdout.flush()
    os.waitpid(made, 0)


WAIT = """
import os, sys, time
while os.getppid() == int(sys.argv[1]):
    time.sleep(0.1)
"""

if __name__ == "__main__":
    become(int(sys.argv[1]))
