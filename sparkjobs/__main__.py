"""What spark-submit runs: `__main__.py ORDER.json`. Spark module.

Standard output is for the hub that started it (progress.py), standard error is the run's log. It
ends when its standard input does: whoever started it is gone then.
"""

import os
import sys
import threading
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # of packages, not of their modules

from pyspark.sql import SparkSession

from sparkjobs.job_spec import read_spec
from sparkjobs.progress import reported_phases
from sparkjobs.result import write_result

ORPHANED = 75


def main(path: str) -> None:
    _end_with_standard_input()
    order = read_spec(Path(path))
    job = import_module(f"sparkjobs.{order.job}.run")
    spark = SparkSession.builder.getOrCreate()
    try:
        with reported_phases(spark.sparkContext) as phases:
            result = job.run(spark, order, phases)
            phases.begin("writing the result")
            write_result(Path(order.result), result)
    finally:
        spark.stop()


def _end_with_standard_input() -> None:
    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
