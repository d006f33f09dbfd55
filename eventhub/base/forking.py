"""The client of the fork server: starts it, and has commands forked from it. Plain module."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from eventhub.base import fork_server
from eventhub.base.fork_server import READY, REQUEST_BYTES_MAX, TITLE_ROOM, Request

SERVER = Path(fork_server.__file__).resolve()
REPLY_S_MAX = 60.0  # to load the module and to fork; a busy machine is slow
END_S = 1.0
# variables that an interpreter, its libraries or a module read when they are loaded, so that a
# command for which one differs cannot be forked
LOADED_VARIABLES = ("LANG", "TZ", "PROMETHEUS_MULTIPROC_DIR")
LOADED_PREFIXES = ("FSSPEC_", "LC_", "LD_", "MALLOC_", "PYTHON")
_PRESENT = frozenset({"PROMETHEUS_MULTIPROC_DIR"})  # its value does not matter


class ServerEnded(OSError):
    """The fork server has ended, or does not answer."""


class ForkedGuardian:
    """A guardian that the server forked, with what `subprocess.Popen` offers."""

    def __init__(self, pid: int, stdin: IO[bytes], status: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout: IO[bytes] | None = None
        self.returncode: int | None = None
        self._status = status
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit status; None while it runs, or while another thread waits for it."""
        if self.returncode is None and self._waiting.acquire(blocking=False):
            try:
                self._await(0.0)
            finally:
                self._waiting.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired."""
        with self._waiting:
            if self.returncode is None:
                self._await(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("guardian", timeout or 0.0)
        return self.returncode

    def kill(self) -> None:
        """Kill the guardian itself."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _await(self, timeout_s: float | None) -> None:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(None if timeout_s is None else timeout_s * 1_000):
            return
        text = self._status.read()
        with suppress(ChildProcessError):  # it is a child of this process if the server has ended
            os.waitpid(self.pid, 0)
        self._status.close()
        self.stdin.close()
        self.returncode = int(text) if text else -signal.SIGKILL


class ForkServer:
    """A fork server that has loaded `module`, whose `adopt_environment` each command calls. Any
    thread may use it.
    """

    def __init__(
        self, module: str, env: Mapping[str, str], identity: Mapping[str, Any], output: int | None
    ) -> None:
        """Start the server. `identity` has `kind`, `uid`, `gid` and `groups`, as a guardian takes
        them. `output` is that of the server itself, as for Popen. Raises OSError.
        """
        self._env = env
        self._lock = threading.Lock()
        self.has_loaded = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            options = {**identity, "module": module, "control": theirs.fileno()}
            self.process = subprocess.Popen(  # noqa: S603 - our own script
                [sys.executable, str(SERVER), json.dumps(options), TITLE_ROOM],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                env=dict(env),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def is_loading(self) -> bool:
        """Return whether it still loads the module, without waiting."""
        with self._lock, suppress(ServerEnded):
            return not self._await_loaded(0.0)
        return False

    def fits(self, argv: Sequence[str], env: Mapping[str, str]) -> bool:
        """Return whether it can fork this command: Python with a script or a module, and with an
        environment that does not change what was loaded.
        """
        is_python = argv[0] == sys.executable and (argv[1] == "-m" or argv[1].endswith(".py"))
        return is_python and _loaded_by(env) == _loaded_by(self._env)

    def fork(self, request: Request, output: int, errors: int) -> ForkedGuardian:
        """Fork a command; `output` and `errors` are descriptors. Waits until the module is loaded.
        Raises ServerEnded.
        """
        options = request.options
        orders, stdin = os.pipe()
        status, written = os.pipe()
        fds = (orders, output, errors, written, *options["pass_fds"], *options["keep_fds"])
        try:
            pid = self._send(json.dumps(request._asdict()).encode(), fds)
        except BaseException:
            os.close(stdin)
            os.close(status)
            raise
        finally:
            os.close(orders)
            os.close(written)
        return ForkedGuardian(pid, open(stdin, "wb", 0), open(status, "rb", 0))  # noqa: PTH123

    def end(self) -> None:
        """End the server; what it forked goes on."""
        self._control.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:  # it loads the module
            self.process.kill()
            self.process.wait()

    def _send(self, message: bytes, fds: Sequence[int]) -> int:
        with self._lock:
            if not self._await_loaded(REPLY_S_MAX):
                raise ServerEnded("the fork server does not become ready")
            try:
                socket.send_fds(self._control, [message], fds)
                self._control.settimeout(REPLY_S_MAX)
                reply = self._control.recv(REQUEST_BYTES_MAX)
            except OSError as error:
                raise ServerEnded(f"the fork server does not answer: {error}") from error
        if not reply:
            raise ServerEnded("the fork server has ended")
        return int(reply)

    def _await_loaded(self, timeout_s: float) -> bool:
        """Return whether the module is loaded within a time. Raises ServerEnded."""
        if self.has_loaded:
            return True
        self._control.settimeout(timeout_s)
        try:
            reply = self._control.recv(len(READY))
        except (BlockingIOError, TimeoutError):
            return False
        except OSError as error:
            raise ServerEnded(f"the fork server does not answer: {error}") from error
        if reply != READY:
            raise ServerEnded("the fork server ended while it loaded the module")
        self.has_loaded = True
        return True


def _loaded_by(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that what is loaded depends on."""
    found = {
        name: value
        for name, value in env.items()
        if name in LOADED_VARIABLES or name.startswith(LOADED_PREFIXES)
    }
    return {**found, **{name: "" for name in found if name in _PRESENT}}
