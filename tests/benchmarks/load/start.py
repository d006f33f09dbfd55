"""Starts the load generator as a child process for one job. Plain."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from eventhub.supervisor.hub import HOME
from tests.benchmarks.load.jobs import Job

JOB_TIMEOUT_S = 900.0
TRIES = 20
PAUSE_S = 0.5


class LoadFailed(Exception):
    """The load generator failed; the message has its last output."""


def run_load(job: Job) -> dict[str, float]:
    """Run one job to its end. Raise LoadFailed.

    It is repeated while the server still counts the sockets of the previous job for the client.
    """
    for _ in range(TRIES):
        done = _run(job)
        if done.returncode == 0:
            figures: dict[str, float] = json.loads(done.stdout)
            return figures
        if "too_many_requests" not in done.stderr:
            break
        time.sleep(PAUSE_S)
    raise LoadFailed(done.stderr[-2000:])


@contextmanager
def running_load(job: Job) -> Iterator[dict[str, float]]:
    """Run a job in the background; its figures are available after the block. Raise LoadFailed."""
    figures: dict[str, float] = {}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_run, job)
        yield figures
        done = running.result()
    if done.returncode != 0:
        raise LoadFailed(done.stderr[-2000:])
    figures.update(json.loads(done.stdout))


def _run(job: Job) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.load"],
        input=json.dumps([type(job).__name__, job._asdict()]),
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=JOB_TIMEOUT_S,
    )
