"""The entry point of a job that its runner found too small for Spark: `without_spark.py SPEC.json`.
Plain module.

Standard output and standard error are those of `__main__.py`. The guardian, its parent, ends it; no
JVM is between them. The job's code is `sparkjobs.<job>.local`.
"""

import json
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # the folder of the packages

from sparkjobs.job_spec import read_spec
from sparkjobs.result import write_result

_NO_TASKS = {"stages_done": 0, "stages": 0, "tasks_done": 0, "tasks": 0}


def main(path: str) -> None:
    """Run the job that the spec at `path` names, and write its result."""
    spec = read_spec(Path(path))
    job = import_module(f"sparkjobs.{spec.job}.local")
    result = job.run(spec, begin)
    begin("writing the result")
    write_result(Path(spec.result), result)


def begin(phase: str) -> None:
    """Report a phase to the hub, and note it in the log."""
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {phase}\n")
    sys.stdout.write(json.dumps({"phase": phase, **_NO_TASKS}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
