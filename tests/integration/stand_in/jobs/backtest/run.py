"""A stand-in for the job `backtest` by Spark; with `early`, in a driver that has no Spark session
yet: to start one is most of such a run.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from sparkjobs.backtest.acts import act

from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec, read_spec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult, write_result

DRIVER = "sparkjobs/__main__.py"


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    name = spec.params.get("act", "")
    phases.begin(f"acting {name}")
    return act(name, spec, 0 if name else table(spark, spec, "streams").count())


def _act_early(spec: JobSpec) -> None:
    """Act and end the driver, as it does at the end of a job, if the run is early."""
    if spec.params.get("early"):
        write_result(Path(spec.result), act(spec.params["act"], spec, 0))
        sys.exit()


if sys.argv[0].endswith(DRIVER):
    _act_early(read_spec(Path(sys.argv[1])))
