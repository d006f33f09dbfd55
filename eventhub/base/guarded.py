"""Start one command under a guardian, and stop it again: the only place that starts processes of
the hub. Plain module.

It knows nothing of what the command is; `eventhub.supervisor.supervisor` decides when to start it
again.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from eventhub.base import guardian

GUARDIAN = Path(guardian.__file__).resolve()


class Identity(NamedTuple):
    """Who the parts run as. `uid` and `gid` are what a process sees; files on disk belong to
    `owner`."""

    kind: str  # self | user | namespace
    uid: int
    gid: int
    groups: tuple[int, ...]
    owner: tuple[int, int]  # uid and gid of the data folder, as seen from outside
    note: str  # one line that says what was done; empty when nothing was


def ordinary() -> Identity:
    """Who this process is."""
    return Identity("self", os.geteuid(), os.getegid(), (), (os.geteuid(), os.getegid()), "")


class Command(NamedTuple):
    """What to run. `env` is the whole environment; `fds` are inherited by the command."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    stop_signal: int = signal.SIGTERM
    orphan_signal: int = signal.SIGKILL  # sent by the kernel when the guardian itself is killed
    grace_s: float = 5.0  # from the stop signal to SIGKILL
    fds: tuple[int, ...] = ()


class Guarded:
    """One run of a command. Its tree ends with this process, whatever ends this process."""

    def __init__(
        self,
        command: Command,
        identity: Identity,
        *,
        keep_fds: tuple[int, ...] = (),
        output: IO[Any] | int = subprocess.PIPE,
    ) -> None:
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
        self.process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", str(GUARDIAN), json.dumps(options), *command.argv],
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
        """Ask the command to end; does not wait."""
        self._order(b"t")

    def kill(self) -> None:
        """End the whole tree now; does not wait."""
        self._order(b"k")

    def poll(self) -> int | None:
        """The command's exit status, None while it runs, negative if the guardian itself was
        killed."""
        return self.process.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the whole tree to end; raises subprocess.TimeoutExpired."""
        return self.process.wait(timeout_s)

    def end(self) -> int:
        """Stop, wait for the grace, kill if need be; returns the exit status."""
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
        except OSError:
            return  # the guardian has ended already
