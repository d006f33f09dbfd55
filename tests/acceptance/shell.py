"""The command line as a person has it: processes of `eventhub`, with a hub and a key in their
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

from tests.live import LiveZone

WAIT_S = 40.0
COMMAND = (sys.executable, "-m", "eventhub_client")


class Done(NamedTuple):
    """How a command ended."""

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
    """One person's environment."""

    def __init__(self, zone: LiveZone, *, key: str = "", url: str = "", **env: str) -> None:
        kept = {name: value for name, value in os.environ.items() if "EVENTHUB_" not in name}
        self.env = {
            **kept,
            "EVENTHUB_URL": url or zone.hub.url,
            "EVENTHUB_KEY": key or zone.admin,
            "HOME": "/nonexistent",
            **env,
        }

    def run(self, *words: str, stdin: str = "", timeout_s: float = WAIT_S) -> Done:
        """A command that ends by itself."""
        done = subprocess.run(
            [*COMMAND, *words],
            input=stdin,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, stdin: str = "") -> Done:
        done = self.run(*words, stdin=stdin)
        assert done.status == 0, done
        return done

    def here(self, *words: str, stdin: str = "") -> Done:
        """The same in this process, where how a process starts and ends is not the question: each
        start costs a third of a second."""
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
        """A command that goes on until it is told to end."""
        process = subprocess.Popen(
            [*COMMAND, *words],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        made = Running(process)
        try:
            yield made
        finally:
            if process.poll() is None:
                made.end(signal.SIGKILL)


class Running:
    """A command under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def line(self) -> Any:
        """The next line of its output, as JSON."""
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        assert text, self.end(signal.SIGKILL)
        return orjson.loads(text)

    def end(self, number: int = signal.SIGINT) -> Done:
        """Send a signal, and wait for the end."""
        self._process.send_signal(number)
        out, err = self._process.communicate(timeout=WAIT_S)
        return Done(self._process.returncode, out, err)
