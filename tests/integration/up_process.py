"""A hub as a child process, watched from outside, and the processes that belong to it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg

from eventhub.supervisor.postgres import Postgres
from tests import forked

HOME = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).with_name("up_stand_in.py")
PATIENCE_S = 90.0  # machines under load are slow; most faults show at once
EXPORT = re.compile(r"^\s*export (\w+)=(\S+)$", re.MULTILINE)  # in the hub's banner
EMBEDDED_VARIABLES = ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL", "EVENTHUB_SECRET_KEY")


def manage(*words: str, **given: str) -> str:
    """Run `manage.py WORDS` and return its output."""
    inherited = {k: v for k, v in os.environ.items() if k not in EMBEDDED_VARIABLES}
    done = forked.manage({**inherited, **given}, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wait_until(happened: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < until, f"timed out after {patience_s} s waiting for: {what}"
        time.sleep(0.05)


class Hub:
    """One run of `up`. `given` are environment variables that replace embedded servers."""

    def __init__(
        self,
        data: Path,
        *words: str,
        port: int = 0,
        script: Path = STAND_IN,
        home: Path = HOME,
        **given: str,
    ) -> None:
        self.data = data
        inherited = {k: v for k, v in os.environ.items() if k not in EMBEDDED_VARIABLES}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                str(script),
                "up",
                "--data",
                str(data),
                "--port",
                str(port),
                *words,
            ],
            # not the script's folder, whose `eventhub` has tests
            env={**inherited, "PYTHONPATH": str(home), "PYTHONSAFEPATH": "1", **given},
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))  # grows while it is read

    @property
    def text(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        found = re.search(r"EventHub is ready at (\S+)", self.text)
        assert found is not None, self.text
        return found.group(1)

    def wait_ready(self) -> "Hub":
        def settled() -> bool:
            return "EventHub is ready at" in self.text or self.process.poll() is not None

        wait_until(settled, "the hub's banner")
        assert self.process.poll() is None, self.text
        return self

    def wait_line(self, part: str, count: int = 1) -> None:
        wait_until(lambda: self.text.count(part) >= count, f"{part!r} in the output")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def wait_end(self, patience_s: float = PATIENCE_S) -> int:
        try:
            status = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # its threads print their stacks
            self._reader.join(PATIENCE_S / 10)
            raise AssertionError(f"the hub does not end:\n{self.text}") from None
        self._reader.join(patience_s)
        return status

    def get(self, path: str = "/readyz") -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return str(answer.read().decode())

    def guardian(self, name: str) -> psutil.Process:
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if guarded_name(child) == name:
                return child
        raise AssertionError(f"no guardian of {name}")

    def part(self, name: str) -> psutil.Process:
        """Return a process by its name; one just restarted may still have only its guardian."""
        wait_until(lambda: bool(self.guardian(name).children()), f"the process of {name}")
        return self.guardian(name).children()[0]

    def execute(self, statement: str, sockets: Path | None = None) -> list[tuple[object, ...]]:
        url = Postgres(self.data / "postgres", sockets or self.data / "run").url()
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    def wait_gone(self) -> None:
        wait_until(lambda: not self.leftovers(), "all processes to end")

    def leftovers(self) -> list[str]:
        return processes_of(self.data)


def guarded_name(process: psutil.Process) -> str | None:
    """Return the name of what a guardian guards, None for another process."""
    try:
        arguments = process.cmdline()
    except psutil.Error:
        return None  # it has ended, or is ending
    if len(arguments) < 5 or not arguments[3].endswith("guardian.py"):
        return None
    return str(json.loads(arguments[4])["name"])


def processes_of(data: Path) -> list[str]:
    """Return all processes of the folder, by arguments, environment or working folder."""
    mark = os.fsencode(data)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            about = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            about += os.fsencode((entry / "cwd").readlink())
            if mark in about:
                found.append(f"{entry.name}: {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            continue
    return found
