"""The entry point of spark-submit: `__main__.py SPEC.json`. Spark module.

Standard output carries progress to the hub (progress.py); standard error is the run's log. The
driver exits when its standard input closes, because the process that started it has ended.
"""

import os
import sys
import threading
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # the folder of the packages

from pyspark.sql import SparkSession

from sparkjobs.job_spec import read_spec
from sparkjobs.progress import reported
from sparkjobs.result import write_result

ORPHANED = 75


def main(path: str) -> None:
    """Run the job that the spec at `path` names, and write its result."""
    _exit_with_standard_input()
    spec = read_spec(Path(path))
    job = import_module(f"sparkjobs.{spec.job}.run")
    spark = SparkSession.builder.getOrCreate()
    try:
        with reported(spark.sparkContext) as phases:
            result = job.run(spark, spec, phases)
            phases.begin("writing the result")
            write_result(Path(spec.result), result)
    finally:
        spark.stop()


def _exit_with_standard_input() -> None:
    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
