"""The command line as a user runs it: processes of `eventhub`, with a hub and a key in their
environment.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
from click.testing import CliRunner
from eventhub_client.commands.main import main

from tests import forked
from tests.live import LiveZone

WAIT_S = 40.0
COMMAND = (sys.executable, "-m", "eventhub_client")


class Done(NamedTuple):
    """The exit status and the output of a finished command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [orjson.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)


class Shell:
    """The environment of one user."""

    def __init__(self, zone: LiveZone, *, key: str = "", url: str = "", **env: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if "EVENTHUB_" not in name}
        self.env = {
            **inherited,
            "EVENTHUB_URL": url or zone.hub.url,
            "EVENTHUB_KEY": key or zone.admin,
            "HOME": "/nonexistent",
            **env,
        }

    def run(self, *words: str, stdin: str = "") -> Done:
        """Run a command to its end, forked from a process that has imported it if it reads
        nothing.
        """
        argv = [*COMMAND, *words]
        if stdin:
            done = subprocess.run(
                argv,
                input=stdin,
                env=self.env,
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                check=False,
            )
        else:
            done = forked.run(argv, self.env)
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, stdin: str = "") -> Done:
        done = self.run(*words, stdin=stdin)
        assert done.status == 0, done
        return done

    def here(self, *words: str, stdin: str = "") -> Done:
        """Run a command in this process, for tests that do not depend on how a process starts and
        ends: a start takes a third of a second.
        """
        others = dict.fromkeys(name for name in os.environ if name not in self.env)
        env = {**others, **self.env}
        done = CliRunner().invoke(main, words, input=stdin, env=env, prog_name="eventhub")
        if not isinstance(done.exception, SystemExit | None):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def ok_here(self, *words: str, stdin: str = "") -> Done:
        done = self.here(*words, stdin=stdin)
        assert done.status == 0, done
        return done

    @contextmanager
    def running(self, *words: str) -> Iterator["Running"]:
        """Start a command that runs until it receives a signal."""
        process = subprocess.Popen(
            [*COMMAND, *words],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        command = Running(process)
        try:
            yield command
        finally:
            if process.poll() is None:
                command.end(signal.SIGKILL)


class Running:
    """A running command."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def line(self) -> Any:
        """Read the next line of its output, as JSON."""
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        assert text, self.end(signal.SIGKILL)
        return orjson.loads(text)

    def end(self, number: int = signal.SIGINT) -> Done:
        """Send a signal, and wait for the end."""
        self._process.send_signal(number)
        out, err = self._process.communicate(timeout=WAIT_S)
        return Done(self._process.returncode, out, err)
