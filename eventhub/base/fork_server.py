"""The fork server: a script, started by path, that imports a module once and then forks Python
commands from itself, each below a guardian. They share the memory of what was imported, and start
in a tenth of a second. Plain module.

`eventhub.base.forking` starts it and sends requests; both speak over one Unix socket:

    -> b"ready"                                 when the module is loaded
    <- {options, argv, env, title} as JSON      with descriptors: orders, output, errors, status,
                                                then `options["pass_fds"]`, `options["keep_fds"]`
    -> the guardian's process id

It ends when the other side closes the socket. Nothing depends on it afterwards: a guardian reads
its orders from one pipe and writes the command's exit status to another.

The rules of a process that forks: it has one thread and no connection, it never collects garbage,
which would write to pages that are shared, and what a module takes from the environment when it is
imported is taken again after the fork (`adopt_environment` of the module).
"""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # the script's folder would hide modules of the standard library
    sys.path[:] = [str(HOME), *(path for path in sys.path if path != str(Path(__file__).parent))]

from eventhub.base import guardian  # noqa: E402

READY = b"ready"
REQUEST_BYTES_MAX = 200_000  # what a Unix socket takes as one message, by default
FDS_MAX = 32
RESERVED_FDS = 64  # descriptors below this number can be given to commands under their number
TITLE_ROOM = "-" * 4_096  # the last argument: room for the command lines of what is forked


class Request(NamedTuple):
    """A command to fork. `title` is the command line of its guardian, as others see it."""

    options: dict[str, Any]
    argv: list[str]
    env: dict[str, str]
    title: list[str]


class _Descriptors(NamedTuple):
    """Received descriptors: for the exit status, for the command, and for the guardian to hold."""

    status: int
    passed: list[int]
    kept: list[int]


def main() -> None:
    """Serve; return in the server at its end, and in each command when its program has ended."""
    options = json.loads(sys.argv[1])
    if options["kind"] != "self":
        _step_down(options)
    control = socket.socket(fileno=options["control"])
    control.set_inheritable(False)
    gc.disable()
    reserved = _reserve()
    module = importlib.import_module(options["module"])
    for fd in reserved:
        os.close(fd)
    gc.collect()
    gc.freeze()
    set_title([sys.executable, __file__, options["module"]])
    request = _serve(control)
    if request is not None:
        os.environ.clear()
        os.environ.update(request.env)
        module.adopt_environment()
        gc.enable()
        _run(request.argv)


def _step_down(options: dict[str, Any]) -> None:
    """Take the identity of the hub's processes, and start again: the kernel lets others than root
    look at a process that has stepped down only when it has executed a program since.
    """
    try:
        guardian.step_down(options)
    except OSError as error:
        sys.exit(f"cannot take the identity of the hub's processes: {error}")
    argv = [sys.executable, __file__, json.dumps({**options, "kind": "self"}), TITLE_ROOM]
    os.execv(sys.executable, argv)  # noqa: S606 - this script


def _reserve() -> list[int]:
    """Take the low descriptors, so that no module that is imported holds one of them."""
    found: list[int] = []
    while (fd := os.open(os.devnull, os.O_RDONLY)) < RESERVED_FDS:
        found.append(fd)
    os.close(fd)
    return found


def _serve(control: socket.socket) -> Request | None:
    """Fork what is requested. Return the request in the forked command, None at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the guardians
    control.send(READY)
    while True:
        message, fds, _, _ = socket.recv_fds(
            control, REQUEST_BYTES_MAX, FDS_MAX, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            return None
        request = Request(**json.loads(message))
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _guard(request, fds)
        for fd in fds:
            os.close(fd)
        control.send(str(pid).encode())


def _guard(request: Request, fds: list[int]) -> Request:
    """Fork the command and watch it as its guardian. Return in the command alone."""
    options = request.options
    try:
        os.setsid()
        set_title(request.title)
        mine = _arranged(fds, len(options["pass_fds"]))
        guardian.become_subreaper()
        own = os.getpid()
        child = os.fork()
    except OSError as error:
        os.write(2, f"the guardian of {options['name']} cannot start: {error}\n".encode())
        os._exit(guardian.CANNOT_RUN)
    if child == 0:
        guardian.enter_command(own, options["orphan_signal"])
        _hand_over(mine, options["pass_fds"])
        set_title(request.argv)
        return request
    try:
        for fd in mine.passed:
            os.close(fd)  # a socket that only the command serves must close with it
        status = guardian.Guardian(child, options["stop_signal"], options["grace_s"]).watch()
        os.write(mine.status, str(status).encode())
    finally:
        os._exit(0)


def _arranged(fds: list[int], passed: int) -> _Descriptors:
    """Make the first three the standard streams, and move the others out of the way."""
    orders, output, errors, *rest = fds
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, RESERVED_FDS) for fd in rest]
    for number, fd in enumerate((orders, output, errors)):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    return _Descriptors(moved[0], moved[1 : 1 + passed], moved[1 + passed :])


def _hand_over(mine: _Descriptors, numbers: list[int]) -> None:
    """Give the command its descriptors under their numbers, and no other one."""
    for fd, number in zip(mine.passed, numbers, strict=True):
        os.dup2(fd, number)
    for fd in (mine.status, *mine.passed, *mine.kept):
        os.close(fd)


def _run(argv: list[str]) -> None:
    """Run `python SCRIPT …` or `python -m MODULE …` as the interpreter does."""
    if argv[1] == "-m":
        sys.argv = argv[2:]
        runpy.run_module(argv[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv[1:]
        runpy.run_path(argv[1], run_name="__main__")


def set_title(argv: list[str]) -> None:
    """Replace the command line that other processes read, as far as its memory suffices."""
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(numbers[45]), int(numbers[46])  # arg_start and arg_end of proc(5)
    text = b"".join(os.fsencode(word) + b"\0" for word in argv)[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))


if __name__ == "__main__":
    main()
