"""Processes of the hub for tests, forked from one server for each process that runs tests: they are
processes like any other, but share what they import, so that a start takes a tenth of a second of
processor time instead of one. The settings are those of their own environment.

A command that the server cannot fork (another interpreter, other PYTHON variables) is executed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from eventhub.base.config import SETTINGS
from eventhub.base.fork_server import Request
from eventhub.base.forking import ForkServer
from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from eventhub.base.guardian import descendants
from eventhub.base.metrics import FOLDER

HOME = Path(__file__).resolve().parents[1]
RUN_S_MAX = 250.0
POLL_S = 0.01
PRELOADED = "tests.preload"
QUICK_PASSWORDS = "TESTS_QUICK_PASSWORDS"  # read there: passwords are hashed once
_kept = ExitStack()  # the server, and a folder for metrics that no test reads


@cache
def fork_server() -> ForkServer:
    """Return the server, started on first use without any setting of the hub."""
    settings = {setting.variable for setting in SETTINGS.values()}
    env = {name: value for name, value in os.environ.items() if name not in settings}
    server = ForkServer(PRELOADED, counting(env), current_identity()._asdict(), None)
    _kept.callback(server.end)
    return server


def counting(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with a folder for metrics, which a forked process has to have."""
    return {FOLDER: _metrics(), **env}


def run(argv: list[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run `python …` to its end, as `subprocess.run` with `capture_output` does."""
    server, env = fork_server(), counting(env)
    if not server.fits(argv, env) or Path.cwd() != HOME:
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    options = {
        "name": argv[-1],
        "stop_signal": signal.SIGTERM,
        "orphan_signal": signal.SIGKILL,
        "grace_s": 0.0,
        "keep_fds": [],
        "pass_fds": [],
    }
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        request = Request(options, argv, dict(env), argv)
        guardian = server.fork(request, output.fileno(), errors.fileno())
        try:
            status = guardian.wait(RUN_S_MAX)
        except subprocess.TimeoutExpired:
            guardian.kill()
            raise
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(argv, status, output.read(), errors.read())


class Started:
    """A command below a guardian, with what tests use of `subprocess.Popen`."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], output: IO[Any]) -> None:
        command = Command(argv[-1], tuple(argv), counting(env), grace_s=0.0)
        self._guarded = GuardedProcess(
            command, current_identity(), output=output, server=fork_server()
        )

    @property
    def pid(self) -> int:
        """The id of the command itself, which runs."""
        return descendants(self._guarded.pid)[0]

    def poll(self) -> int | None:
        return self._guarded.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        return self._guarded.wait(timeout_s)

    def send_signal(self, number: int) -> None:
        """Send a signal to the command itself, unless it has ended."""
        while not (found := descendants(self._guarded.pid)):
            if self.poll() is not None:
                return
            time.sleep(POLL_S)
        with suppress(ProcessLookupError):
            os.kill(found[0], number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def manage(env: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `manage.py WORDS` to its end."""
    return run([sys.executable, str(HOME / "manage.py"), *words], env)


def manage_given(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run `manage.py WORDS` without the tests' database; the variables may name another one."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE_", "PG"))}
    return manage({**given, **variables}, *words)


def end_server() -> None:
    """End the server at the end of the process's tests."""
    _kept.close()
    fork_server.cache_clear()
    _metrics.cache_clear()


@cache
def _metrics() -> str:
    return _kept.enter_context(tempfile.TemporaryDirectory(prefix="eventhub-metrics-"))
