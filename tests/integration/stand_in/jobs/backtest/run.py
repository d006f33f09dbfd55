"""A stand-in for the job `backtest`, which does what its parameters say; with `early`, in a driver
that has no Spark session yet: to start one is most of such a run.
"""

import atexit
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec, read_spec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult, write_result

DRIVER = "sparkjobs/__main__.py"


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    act = spec.params.get("act", "")
    phases.begin(f"acting {act}")
    return _act(act, spec, 0 if act else table(spark, spec, "streams").count())


def _act(act: str, spec: JobSpec, streams: int) -> JobResult:
    file = Path(spec.result, "table", "part.csv")
    file.parent.mkdir(parents=True)
    file.write_text("a,b\n1,2\n")
    Path(spec.result, "report.html").write_text("<p>Two columns.</p>")
    Path(spec.work, "left.txt").write_text("over")
    if act == "hang":
        Path(spec.work, "pid").write_text(str(os.getpid()))
        signal.pause()
    if act == "fail":
        for number in range(20_000):
            sys.stderr.write(f"line {number} of a long story\n")
        raise ValueError(f"nothing at {spec.inputs} of postgresql://user:word@host/db")
    if act == "spoil":
        atexit.register(file.write_text, "c\n")  # after the manifest was written
    about = {"table": "Two columns."}
    return JobResult("Looked.", {"streams": streams}, "ok", about, {"rows": [1, 2]})


def _act_early(spec: JobSpec) -> None:
    """Act and end the driver, as it does at the end of a job, if the run is early."""
    if spec.params.get("early"):
        write_result(Path(spec.result), _act(spec.params["act"], spec, 0))
        sys.exit()


if sys.argv[0].endswith(DRIVER):
    _act_early(read_spec(Path(sys.argv[1])))
