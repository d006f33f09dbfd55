"""The hooks of jobs: work that runners do instead of Spark, and with the driver's result. Only
runners import this module. Plain module.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from sparkjobs.job_spec import JobSpec
from sparkjobs.result import JobResult, StoredResult
from sparkjobs.runs import backtest, match_index
from sparkjobs.runs.context import RunContext


class JobHooks(NamedTuple):
    """The hooks of one job. Errors of the hub's error tree become the run's failure reason.

    `local` may do the job without Spark, before anything is exported, and return the result; None
    leaves it to the driver. `is_local` says of the exported inputs whether the driver is
    `without_spark.py`, for which the job has a module `local`. `publish` receives the driver's
    result after its files were verified and before the run completes; it may return a replacement.
    `lock` is held from before `local` to after `publish`.
    """

    local: Callable[[RunContext], JobResult | None] = lambda context: None
    is_local: Callable[[JobSpec], bool] = lambda spec: False
    publish: Callable[[RunContext, StoredResult], JobResult | None] = lambda context, stored: None
    lock: Callable[[RunContext], AbstractContextManager[None]] = lambda context: nullcontext()


HOOKS: dict[str, JobHooks] = {
    "backtest": JobHooks(is_local=backtest.is_local),
    "match_index": JobHooks(
        local=match_index.build_locally, publish=match_index.publish, lock=match_index.lock
    ),
}


def hooks_of(job: str) -> JobHooks:
    return HOOKS.get(job, JobHooks())
