"""A run of a job as processes, and who of them dies: the runner, the driver's JVM, an executor's
JVM, or a worker of Python."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil

LOOK_S = 0.05
KINDS = ("runner", "driver", "executor", "python")
_MARKS = {
    "driver": "deploy.SparkSubmit",
    "executor": "CoarseGrainedExecutor",
    "python": "pyspark.daemon",
}


def kill_one(
    run: subprocess.Popen[str], cluster: Sequence[int], after_s: float, dice: random.Random
) -> str:
    """Wait, then kill -9 one process of the run. Its kind; "" if the run was over before."""
    with suppress(subprocess.TimeoutExpired):
        run.wait(after_s)
    expected = dice.choice(KINDS)
    while run.poll() is None:
        there = [run.pid] if expected == "runner" else _found(expected, (run.pid, *cluster))
        if there:
            with suppress(ProcessLookupError):
                os.kill(dice.choice(sorted(there)), signal.SIGKILL)
                return expected
        time.sleep(LOOK_S)
    return ""


def drivers(order: str) -> list[int]:
    """Drivers of a run, by the file of its order: of a runner that is gone there are none soon."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if order in (process.info["cmdline"] or ())
    ]


def _found(kind: str, roots: Sequence[int]) -> list[int]:
    """Processes of a kind below the roots."""
    found: list[int] = []
    for root in roots:
        with suppress(psutil.Error):
            for process in psutil.Process(root).children(recursive=True):
                with suppress(psutil.Error):
                    words = process.cmdline()
                    is_java = words[:1] != [] and words[0].endswith("java")
                    if is_java != (kind == "python") and any(_MARKS[kind] in w for w in words):
                        found.append(process.pid)
    return found
