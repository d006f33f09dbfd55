"""What is done in a run besides Spark, by job: instead of it, and with its result. Only runners
import it. Plain module.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from sparkjobs.result import JobResult, StoredResult
from sparkjobs.runs import match_index
from sparkjobs.runs.context import RunContext


def _by_spark(context: RunContext) -> JobResult | None:
    return None


def _as_it_is(context: RunContext, stored: StoredResult) -> JobResult | None:
    return None


def _beside_others(context: RunContext) -> AbstractContextManager[None]:
    return nullcontext()


class JobHooks(NamedTuple):
    """`local` does the job without Spark, before anything is exported, and says what came of it;
    None: Spark is to do it. `publish` gets what Spark left, after its files were checked and before
    the run counts as completed; what it returns takes the place of the result's words and figures,
    None: they stay. `alone` is held from before `local` to after `publish`. Errors of the hub's
    tree tell why a run failed.
    """

    local: Callable[[RunContext], JobResult | None] = _by_spark
    publish: Callable[[RunContext, StoredResult], JobResult | None] = _as_it_is
    alone: Callable[[RunContext], AbstractContextManager[None]] = _beside_others


HOOKS: dict[str, JobHooks] = {
    "match_index": JobHooks(match_index.build_here, match_index.publish, match_index.alone),
}


def hooks_of(job: str) -> JobHooks:
    return HOOKS.get(job, JobHooks())
