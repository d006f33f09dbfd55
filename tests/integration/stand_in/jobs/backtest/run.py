"""A stand-in for the job `backtest`, which does what its parameters say."""

import atexit
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    act = spec.params.get("act", "")
    phases.begin(f"acting {act}")
    streams = 0 if act else table(spark, spec, "streams").count()
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
