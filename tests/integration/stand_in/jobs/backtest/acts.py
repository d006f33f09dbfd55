"""What the stand-in for the job `backtest` does: what its parameters say."""

import atexit
import os
import signal
import sys
from pathlib import Path

from sparkjobs.job_spec import JobSpec
from sparkjobs.result import JobResult


def act(name: str, spec: JobSpec, streams: int) -> JobResult:
    file = Path(spec.result, "table", "part.csv")
    file.parent.mkdir(parents=True)
    file.write_text("a,b\n1,2\n")
    Path(spec.result, "report.html").write_text("<p>Two columns.</p>")
    Path(spec.work, "left.txt").write_text("over")
    if name == "hang":
        Path(spec.work, "pid").write_text(str(os.getpid()))
        signal.pause()
    if name == "fail":
        for number in range(20_000):
            sys.stderr.write(f"line {number} of a long story\n")
        raise ValueError(f"nothing at {spec.inputs} of postgresql://user:word@host/db")
    if name == "spoil":
        atexit.register(file.write_text, "c\n")  # after the manifest was written
    about = {"table": "Two columns."}
    return JobResult("Looked.", {"streams": streams}, "ok", about, {"rows": [1, 2]})
