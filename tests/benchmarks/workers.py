"""The processes of the benchmark `callbacks`: Celery workers and the sink. Plain."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from eventhub.base.forking import ForkServer
from eventhub.base.guarded_process import Command, GuardedProcess, Identity
from eventhub.supervisor.hub import HOME

READY_S = 60.0
READY = "ready."  # the end of the line with which a Celery worker begins to consume


class Took(NamedTuple):
    """The requests at the sink, and the time from the first to the last."""

    requests: int
    first_s: float
    last_s: float


class Sink:
    """Receivers in a process of their own; `urls` by kind."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.ports: dict[str, int] = json.loads(self._line())

    def url(self, kind: str, path: str = "") -> str:
        return f"http://127.0.0.1:{self.ports[kind]}/{path}"

    def took(self) -> Took:
        """Return the requests since the last call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Took(*json.loads(self._line()))

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def sink() -> Iterator[Sink]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.load.sink"],
        cwd=HOME,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Sink(process)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def workers(
    argvs: Sequence[Sequence[str]],
    env: Mapping[str, str],
    log: Path,
    *,
    wait: bool = True,
    forks: ForkServer | None = None,
) -> Iterator[None]:
    """Run Celery workers with those arguments for Python; all are ready when the block starts."""
    log.unlink(missing_ok=True)
    own = Identity("self", os.getuid(), os.getgid(), (), (os.getuid(), os.getgid()), "")
    running = []
    with log.open("ab") as output:
        for at, argv in enumerate(argvs, 1):
            command = Command(f"worker-{at}", (sys.executable, *argv), dict(env), signal.SIGTERM)
            running.append(GuardedProcess(command, own, output=output, server=forks))
    try:
        if wait:
            _await_ready(running, log)
        yield
    finally:
        for process in running:
            process.end()


def _await_ready(running: Sequence[GuardedProcess], log: Path) -> None:
    until = time.monotonic() + READY_S
    while log.read_text().count(READY) < len(running):
        ended = any(process.poll() is not None for process in running)
        assert not ended and time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.02)
