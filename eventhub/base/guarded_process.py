"""Commands under a guardian: the only module that starts processes of the hub. Plain module.

It does not know what a command does; `eventhub.supervisor.supervisor` decides when to restart it.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from eventhub.base import guardian
from eventhub.base.fork_server import Request
from eventhub.base.forking import ForkedGuardian, ForkServer

GUARDIAN = Path(guardian.__file__).resolve()


class Identity(NamedTuple):
    """The user that processes of the hub run as. A process sees `uid` and `gid`; files on disk
    belong to `owner`.
    """

    kind: str  # self | user | namespace
    uid: int
    gid: int
    groups: tuple[int, ...]
    owner: tuple[int, int]  # uid and gid of the data folder, outside of a user namespace
    note: str  # one line about the choice; empty when there was none


def current_identity() -> Identity:
    """Return the identity of this process."""
    return Identity("self", os.geteuid(), os.getegid(), (), (os.geteuid(), os.getegid()), "")


class Command(NamedTuple):
    """A command to run. `env` is the whole environment; the command inherits `fds`."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    stop_signal: int = signal.SIGTERM
    orphan_signal: int = signal.SIGKILL  # sent by the kernel when the guardian itself is killed
    grace_s: float = 5.0  # from the stop signal to SIGKILL
    fds: tuple[int, ...] = ()


class GuardedProcess:
    """One run of a command. Its process tree ends when this process ends, for any reason."""

    process: "subprocess.Popen[bytes] | ForkedGuardian"  # the guardian

    def __init__(
        self,
        command: Command,
        identity: Identity,
        *,
        keep_fds: tuple[int, ...] = (),
        output: IO[Any] | int = subprocess.PIPE,
        server: ForkServer | None = None,
    ) -> None:
        """Start it; with `server` it is forked, if that has what the command loads. Raises OSError;
        ServerEnded if the server has ended.
        """
        options = {
            "name": command.name,
            "kind": identity.kind,
            "uid": identity.uid,
            "gid": identity.gid,
            "groups": identity.groups,
            "stop_signal": int(command.stop_signal),
            "orphan_signal": int(command.orphan_signal),
            "grace_s": command.grace_s,
            "keep_fds": keep_fds,
            "pass_fds": command.fds,
        }
        self.command = command
        argv = [sys.executable, "-I", "-S", str(GUARDIAN), json.dumps(options), *command.argv]
        if server is not None and server.fits(command.argv, command.env):
            request = Request(options, list(command.argv), dict(command.env), argv)
            self.process = _forked(server, request, output)
            return
        self.process = subprocess.Popen(  # noqa: S603 - our own script
            argv,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env=dict(command.env),
            pass_fds=(*keep_fds, *command.fds),
            start_new_session=True,  # Ctrl-C in a terminal reaches the supervisor only
        )

    @property
    def pid(self) -> int:
        """The guardian's process id."""
        return self.process.pid

    def stop(self) -> None:
        """Ask the command to end, without waiting."""
        self._order(b"t")

    def kill(self) -> None:
        """Kill the whole tree, without waiting."""
        self._order(b"k")

    def poll(self) -> int | None:
        """Return the command's exit status: None while it runs, negative if the guardian itself was
        killed.
        """
        return self.process.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the whole tree to end. Raises subprocess.TimeoutExpired."""
        return self.process.wait(timeout_s)

    def end(self) -> int:
        """Stop the command, kill it after its grace, and return the exit status."""
        self.stop()
        try:
            return self.wait(self.command.grace_s + guardian.REST_GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.wait()

    def _order(self, byte: bytes) -> None:
        pipe = self.process.stdin
        try:
            if pipe is not None:
                pipe.write(byte)
        except (OSError, ValueError):
            return  # the guardian has already ended, or its pipe was closed with its end


def _forked(server: ForkServer, request: Request, output: IO[Any] | int) -> ForkedGuardian:
    with ExitStack() as opened:
        reading = None
        if output == subprocess.PIPE:
            reading, writing = os.pipe()
            opened.callback(os.close, writing)
        elif output == subprocess.DEVNULL:
            writing = os.open(os.devnull, os.O_WRONLY)
            opened.callback(os.close, writing)
        else:
            writing = output if isinstance(output, int) else output.fileno()
        try:
            process = server.fork(request, writing, writing)
        except BaseException:
            if reading is not None:
                os.close(reading)
            raise
        if reading is not None:
            process.stdout = open(reading, "rb", 0)  # noqa: SIM115, PTH123 - as Popen's
        return process
