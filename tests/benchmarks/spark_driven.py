"""One job's driver on a generated history, started as the hub starts it."""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from sparkjobs.job_spec import write_spec
from sparkjobs.result import JobResult, read_result
from sparkjobs.runs.cancellation import StopSignal
from sparkjobs.runs.driver import drive
from sparkjobs.runs.folders import RunFolder
from sparkjobs.runs.launch import SparkSettings, driver_command
from tests.benchmarks.history import History
from tests.benchmarks.watching import MB, watched

CORES = 2
MEMORY = "2g"


class Driven(NamedTuple):
    """The cost of a run. `seconds`: from the start of its process to its end, including some
    seconds for the session; `peak_mb`: of driver, JVM and Python workers together.
    """

    seconds: float
    peak_mb: float
    cpu_s: float
    result: JobResult

    @property
    def figures(self) -> dict[str, float]:
        return {"s": self.seconds, "peak_mb": self.peak_mb, "cpu_s": self.cpu_s}


def driven(history: History, job: str, params: dict[str, Any], folder: Path) -> Driven:
    """Run a job. Raise SparkFailed."""
    run = RunFolder(folder / "run")
    run.create()
    order = history.order(job, params, str(run.work), str(run.unfinished))
    write_spec(run.work, order)
    spark = SparkSettings(f"local[{CORES}]", MEMORY, "", os.environ.get("JAVA_HOME", ""))
    with watched(()) as took:
        began = time.monotonic()
        started = driver_command(spark, run, "benchmark", folder / "java")
        drive(started, run.log, StopSignal(), lambda said: None)
        seconds = time.monotonic() - began
    result = read_result(run.unfinished).result
    return Driven(seconds, took.peak / MB, sum(took.cpu_s.values()), result)
