"""The processes of a running hub, for tests: started, stopped, killed, each below its guardian."""

import http.client
import socket
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from eventhub.base.guardian import descendants
from eventhub.supervisor.hub import celery_worker
from tests.forked import HOME, counting, fork_server

MANAGE = str(HOME / "manage.py")
END_TIMEOUT_S = 60.0
READY_TIMEOUT_S = 3.0
POLL_S = 0.05
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is this machine


class LiveProcess:
    """One process of the hub; `argv` follows the interpreter's name."""

    def __init__(
        self,
        name: str,
        argv: tuple[str, ...],
        env: dict[str, str],
        log: Path,
        *,
        forked: bool = True,
    ) -> None:
        """Take what it runs; when it is `forked`, its memory says nothing: it shares that."""
        self.name = name
        self._forked = forked
        self._argv = argv
        self._env = env
        self._log = log
        self._run: GuardedProcess | None = None

    @property
    def pid(self) -> int:
        """The id of the Python process itself, for signals and for measuring memory."""
        assert self._run is not None, f"{self.name} does not run"
        until = time.monotonic() + END_TIMEOUT_S
        while not (found := descendants(self._run.pid)):
            assert time.monotonic() < until, f"{self.name} does not start"
            time.sleep(POLL_S)
        return found[0]

    @property
    def running(self) -> bool:
        return self._run is not None and self._run.poll() is None

    def start(self) -> None:
        with self._log.open("ab") as log:
            grace_s = limits.GRACEFUL_S_MAX + 2.0
            argv = (sys.executable, *self._argv)
            command = Command(self.name, argv, counting(self._env), grace_s=grace_s)
            self._run = GuardedProcess(
                command,
                current_identity(),
                output=log,
                server=fork_server() if self._forked else None,
            )

    def log(self) -> str:
        """Return the log of all processes that share the file."""
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """Send SIGTERM and wait for the end."""
        if self._run is not None:
            self._run.end()
            self._run = None

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self._run is not None:
            self._run.kill()
            self._run.wait(END_TIMEOUT_S)
            self._run = None

    def restart(self) -> None:
        """Stop and start again; sockets of clients break, what is stored stays."""
        self.stop()
        self.start()


class WebProcess(LiveProcess):
    """One `manage.py web`, always on the same port. `start` returns when it is ready."""

    def __init__(self, name: str, env: dict[str, str], log: Path) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(name, (MANAGE, "web", "--port", str(self.port)), env, log)

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/ws"

    def start(self, *, wait: bool = True) -> None:
        super().start()
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout_s: float = limits.READY_TIMEOUT_S_MAX) -> None:
        """Wait until /readyz answers 200; fail with the end of the log if the process ended."""
        until = time.monotonic() + timeout_s
        while not self.is_ready():
            if not self.running or time.monotonic() > until:
                raise AssertionError(f"{self.name} is not ready:\n{self.log()[-4000:]}")
            time.sleep(POLL_S)

    def is_ready(self) -> bool:
        try:
            with _DIRECT.open(f"{self.url}/readyz", timeout=READY_TIMEOUT_S) as answer:
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):
            return False


class Processes(NamedTuple):
    """The processes of one hub, started or not."""

    web: list[WebProcess]
    forwarders: list[LiveProcess]
    workers: list[LiveProcess]

    @classmethod
    def of(cls, env: dict[str, str], folder: Path, count: int) -> "Processes":
        """Return so many of each kind."""
        web, forwarders, workers = [], [], []
        for number in range(1, count + 1):
            web.append(WebProcess(f"web-{number}", env, folder / "web.log"))
            name = f"forward-{number}"
            argv: tuple[str, ...] = (MANAGE, "forward")
            forwarders.append(LiveProcess(name, argv, env, folder / f"{name}.log"))
            name = f"worker-{number}"
            argv = celery_worker(f"{name}@{folder.name}")
            workers.append(LiveProcess(name, argv, env, folder / f"{name}.log"))
        return cls(web, forwarders, workers)

    def start_web(self) -> None:
        """Start the web processes; return when all are ready."""
        for process in self.web:
            process.start(wait=False)
        for process in self.web:
            process.wait_ready()

    def stop(self) -> None:
        for process in (*self.workers, *self.forwarders, *self.web):
            process.stop()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
