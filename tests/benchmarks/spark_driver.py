"""One job's driver on a made history, as the hub starts it: how long, how much memory, and what it
found.
"""

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from eventhub.jobs.folders import Folder
from eventhub.jobs.launch import Spark, launch
from sparkjobs.order import write_order
from sparkjobs.result import Result, read_result
from tests.benchmarks.history import History

_SAMPLE_S = 0.2
MIB = 1024 * 1024


class Ran(NamedTuple):
    """`memory_mb`: the most that driver, JVM and Python workers held at a moment, shared
    pages counted once.
    """

    seconds: float
    memory_mb: float
    result: Result


def run_driver(
    history: History, job: str, params: dict[str, Any], folder: Path, spark: Spark
) -> Ran:
    """Raises RuntimeError if it fails."""
    run = Folder(folder)
    for each in (run.work, run.unfinished):
        each.mkdir(parents=True)
    order = history.order(job, params, str(run.work), str(run.unfinished))
    write_order(run.root, order)
    started = launch(spark, run, f"benchmark {job}", folder / "java")
    began = time.perf_counter()
    with run.log.open("wb") as log:
        process = subprocess.Popen(
            started.argv, env=started.env, stdin=subprocess.PIPE, stdout=log, stderr=log
        )
        watch = _Memory(process.pid)
        status = process.wait()
        seconds = time.perf_counter() - began
    if status:
        raise RuntimeError(f"{job} ended with {status}: {run.log.read_text()[-3_000:]}")
    return Ran(seconds, watch.end() / MIB, read_result(run.unfinished).result)


class _Memory:
    """The most that a process and all below it held, as the kernel shares it out among them."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            self._most = max(self._most, sum(map(_held, _tree(self._root))))


def _tree(root: psutil.Process) -> list[psutil.Process]:
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _held(process: psutil.Process) -> int:
    """Its proportional share, in bytes; 0 if it has gone."""
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    [line] = [line for line in text.splitlines() if line.startswith("Pss:")] or ["Pss: 0"]
    return int(line.split()[1]) * 1024


def default_spark(memory: str = "2g") -> Spark:
    """The hub's own defaults, on all cores."""
    return Spark(
        f"local[{len(os.sched_getaffinity(0))}]", memory, "", os.environ.get("JAVA_HOME", "")
    )
