"""The guardian: a script, started by path, that runs one command and ends its whole process tree
when the supervisor is gone. Plain module.

It imports nothing but the standard library: it starts once per process of the hub, with
`python -I -S`, in some 30 ms.

Standard input is a pipe whose other end only the supervisor holds. A byte `t` asks to stop, `k` to
kill; end of file means that the supervisor is gone, and counts as `t`. As a subreaper the guardian
inherits every orphan below it, so it can find the whole tree, and it ends only when that tree is
empty. Its exit status is the command's (128 + n: signal n).
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWUSER = 0x10000000
REST_GRACE_S = 2.0  # for processes that the command left behind when it ended
KILL_INTERVAL_S = 0.05  # the tree may fork while it is being killed: scan it again
CANNOT_RUN = 126

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def become_subreaper() -> None:
    """Make the kernel give this process the orphans below it."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def descendants(root: int) -> list[int]:
    """Return the ids of all processes below `root`, parents first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib would cost a third of the start
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(entry))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found[1:]


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def enter_user_namespace(uid: int, gid: int) -> None:
    """Enter a user namespace as `uid`:`gid`; files and signals keep the identity outside."""
    outside = os.geteuid(), os.getegid()
    _check(_libc.unshare(CLONE_NEWUSER), "unshare(CLONE_NEWUSER)")
    lines = (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outside[0]} 1"),
        ("gid_map", f"{gid} {outside[1]} 1"),
    )
    for name, text in lines:
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)


def step_down(options: dict[str, Any]) -> None:
    """Take the identity that processes of the hub run as; `kind` is self, user or namespace."""
    if options["kind"] == "namespace":
        enter_user_namespace(options["uid"], options["gid"])
    elif options["kind"] == "user":
        os.setgroups(options["groups"])
        os.setresgid(options["gid"], options["gid"], options["gid"])
        os.setresuid(options["uid"], options["uid"], options["uid"])


def enter_command(guardian: int, orphan_signal: int) -> None:
    """Prepare the child of a guardian for its command: it dies with the guardian, has a process
    group of its own, and no input.
    """
    _check(_libc.prctl(PR_SET_PDEATHSIG, orphan_signal, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != guardian:
        os._exit(CANNOT_RUN)
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def run_command(command: list[str], orphan_signal: int) -> int:
    """Start the command as a child that dies with this process, and return its id."""
    guardian = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        enter_command(guardian, orphan_signal)
        os.execvp(command[0], command)  # noqa: S606 - the supervisor's own command
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error}\n".encode())
    finally:
        os._exit(CANNOT_RUN)


class Guardian:
    """Watches one child and its tree. Single-threaded, because the child's death signal is bound to
    this process's main thread.
    """

    def __init__(self, child: int, stop_signal: int, grace_s: float) -> None:
        self.child = child
        self.stop_signal = stop_signal
        self.grace_s = grace_s
        self.status: int | None = None
        self.kill_at: float | None = None
        self.pipe_open = True
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def watch(self) -> int:
        """Wait until the tree is empty, and return the command's exit status."""
        while not self._reap():
            sources = [self.wake, 0] if self.pipe_open else [self.wake]
            readable, _, _ = select.select(sources, [], [], self._timeout_s())
            if self.wake in readable:
                self._read_signals()
            if 0 in readable:
                self._read_orders()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                signal_all(descendants(os.getpid()), signal.SIGKILL)
        return self.status if self.status is not None else CANNOT_RUN

    def stop(self) -> None:
        """Ask the command to end, once; when it has, the rest of the tree is ended."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.grace_s
            if self.status is None:
                os.kill(self.child, self.stop_signal)
                os.kill(self.child, signal.SIGCONT)

    def _timeout_s(self) -> float | None:
        if self.kill_at is None:
            return None
        return max(KILL_INTERVAL_S, self.kill_at - time.monotonic())

    def _read_orders(self) -> None:
        orders = os.read(0, 16)
        self.pipe_open = bool(orders)
        if b"k" in orders:
            self.kill_at = time.monotonic()
        else:
            self.stop()

    def _read_signals(self) -> None:
        numbers = os.read(self.wake, 512)
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self.stop()

    def _reap(self) -> bool:
        """Reap ended processes; return whether the tree is empty."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.child:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
                self._end_rest()

    def _end_rest(self) -> None:
        signal_all(descendants(os.getpid()), signal.SIGTERM)
        rest_until = time.monotonic() + REST_GRACE_S
        self.kill_at = rest_until if self.kill_at is None else min(self.kill_at, rest_until)


def main() -> int:
    options = json.loads(sys.argv[1])
    for fd in options["keep_fds"]:
        os.set_inheritable(fd, False)
    try:
        step_down(options)
        become_subreaper()
    except OSError as error:
        os.write(2, f"cannot take the identity of the hub's processes: {error}\n".encode())
        return CANNOT_RUN
    child = run_command(sys.argv[2:], options["orphan_signal"])
    for fd in options["pass_fds"]:
        os.close(fd)  # a socket that only the command serves must close with it
    return Guardian(child, options["stop_signal"], options["grace_s"]).watch()


if __name__ == "__main__":
    sys.exit(main())
