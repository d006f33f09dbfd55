"""The supervisor's fork server: started, replaced by one that loads a new version, ended. Without
one, each process loads by itself what it needs. Plain module.
"""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.forking import ForkServer, ServerEnded
from eventhub.base.guarded_process import Command, GuardedProcess, Identity
from eventhub.supervisor.output import Output

NAME = "fork-server"  # in the output


class ServerExit(NamedTuple):
    """The end of a fork server."""

    server: ForkServer
    status: int


class Forks:
    """Starts processes, forked where that is possible. `start` starts a fork server, `report` gets
    its end, in a thread; all calls are made in one thread.
    """

    def __init__(
        self,
        start: Callable[[], ForkServer] | None,
        output: Output,
        report: Callable[[ServerExit], None],
        load_s_max: float = limits.SLOW_START_S,
    ) -> None:
        self._start = start
        self._output = output
        self._report = report
        self._server: ForkServer | None = None
        self._load_s_max = load_s_max
        self._given_up_at = 0.0  # on the clock of time.monotonic

    @property
    def pids(self) -> set[int]:
        """The process id of the server, if there is one."""
        return set() if self._server is None else {self._server.process.pid}

    def renew(self) -> None:
        """Start a server, which loads what is on the disk now, in place of the present one."""
        self.end()
        if self._start is None:
            return
        try:
            server = self._start()
            self._server = server
            self._given_up_at = time.monotonic() + self._load_s_max
            if server.process.stdout is not None:
                self._output.pump(NAME, server.process.stdout)
            threading.Thread(target=self._await_exit, args=(server,), daemon=True).start()
        except (OSError, RuntimeError) as error:  # processes, memory or threads are short
            self._output.say(f"{NAME} cannot be started ({error})")
            self.end()

    def end(self) -> None:
        """End the server; what it forked goes on."""
        server, self._server = self._server, None
        if server is not None:
            server.end()

    def is_loading(self) -> bool:
        """Return whether the server is still loading what processes need. One that takes too long
        is ended.
        """
        loading = self._server is not None and self._server.is_loading()
        if loading and time.monotonic() >= self._given_up_at:
            self._output.say(
                f"{NAME} has not loaded the hub in {self._load_s_max:g} s: each process loads it "
                "by itself"
            )
            self.end()
            return False
        return loading

    def may_fork(self, command: Command) -> bool:
        """Return whether this command is forked when the server is ready."""
        return self._server is not None and self._server.fits(command.argv, command.env)

    def start(
        self, command: Command, identity: Identity, keep_fds: tuple[int, ...]
    ) -> GuardedProcess:
        """Start a command, forked if the server is ready. Raises OSError."""
        server = None if self.is_loading() else self._server
        try:
            return GuardedProcess(command, identity, keep_fds=keep_fds, server=server)
        except ServerEnded:
            return GuardedProcess(command, identity, keep_fds=keep_fds)

    def on_exit(self, event: ServerExit) -> None:
        """Start another server, unless the hub cannot be loaded: another would not help."""
        if event.server is not self._server:
            return  # it was replaced
        if event.server.has_loaded:
            self._output.say(f"{NAME} ended with status {event.status}: starting another")
            self.renew()
        else:
            self._output.say(f"{NAME} cannot load the hub: each process loads it by itself")
            self.end()

    def _await_exit(self, server: ForkServer) -> None:
        self._report(ServerExit(server, server.process.wait()))
