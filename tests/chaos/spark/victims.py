"""A run of a job as processes, and the choice of one to kill: the runner, the driver's JVM, an
executor's JVM, or a Python worker.
"""

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
    """Wait, then kill one process of the run with SIGKILL. Return its kind; "" if the run was over
    before.
    """
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
    """Return the drivers of a run, found by the file of its order; a runner that ended has none
    soon after.
    """
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if order in (process.info["cmdline"] or ())
    ]


def _found(kind: str, roots: Sequence[int]) -> list[int]:
    """Return processes of a kind below the roots."""
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
