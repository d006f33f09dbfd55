"""A stand-in for the job `backtest` without Spark."""

from collections.abc import Callable

from sparkjobs.backtest.acts import act

from sparkjobs.job_spec import JobSpec
from sparkjobs.result import JobResult


def run(spec: JobSpec, begin: Callable[[str], None]) -> JobResult:
    name = spec.params.get("act", "")
    begin(f"acting {name}")
    return act(name, spec, 0)
