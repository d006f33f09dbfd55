"""A tiny job in the place of `backtest`, which does what its parameters say."""

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


def run(spark: SparkSession, order: JobSpec, phases: Phases) -> JobResult:
    act = order.params.get("act", "")
    phases.begin(f"acting {act}")
    streams = 0 if act else table(spark, order, "streams").count()
    file = Path(order.result, "table", "part.csv")
    file.parent.mkdir(parents=True)
    file.write_text("a,b\n1,2\n")
    Path(order.result, "report.html").write_text("<p>Two columns.</p>")
    Path(order.work, "left.txt").write_text("over")
    if act == "hang":
        Path(order.work, "pid").write_text(str(os.getpid()))
        signal.pause()
    if act == "fail":
        for number in range(20_000):
            sys.stderr.write(f"line {number} of a long story\n")
        raise ValueError(f"nothing at {order.inputs} of postgresql://user:word@host/db")
    if act == "spoil":
        atexit.register(file.write_text, "c\n")  # after the result has said what is in it
    about = {"table": "Two columns."}
    return JobResult("Looked.", {"streams": streams}, "ok", about, {"rows": [1, 2]})
