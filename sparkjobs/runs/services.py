"""Asks for runs of jobs, which a worker does (job.py), cancels them, and carries out a plan.
Django module.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple, get_args

from django.db import transaction

from delivery import log_retention
from eventhub.access.zone_names import zone_names
from eventhub.api.announcements import announce, announce_all, raw_connection
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.task_requests import RUN_JOBS, request_task, require_workers
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.streams import lock_system
from eventhub.postgresql.connections import CONNECTION_ERRORS, connect
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import CANCELLED
from sparkjobs.runs.errors import NoPlan, RunOver, RunPublishing, TooManyRuns
from sparkjobs.runs.folders import folder_of
from sparkjobs.runs.models import JobRun
from sparkjobs.runs.params import check_params
from sparkjobs.runs.retention.apply import ActionOutcome, ApplyTarget, Done, apply_actions
from sparkjobs.runs.retention.plan import PlannedAction, read_plan
from sparkjobs.runs.rows import Run, RunRequest
from sparkjobs.runs.selectors import find_run

APPLIED = "retention.applied"


class ApplyOptions(NamedTuple):
    """How a plan is carried out."""

    dry_run: bool = False
    seconds: float = float("inf")  # as long as it takes
    report: Callable[[ActionOutcome], None] = lambda _: (
        None
    )  # called with the outcome of each segment


def request_run(*, job: str, params: dict[str, Any], requested_by: str) -> Run:
    """A run that begins as soon as a worker is free. Raises UnknownJob, TooManyRuns, RedisOff, and
    what the parameters are refused with.
    """
    require_workers()
    asked = RunRequest(job, check_params(job, params), requested_by)
    with transaction.atomic():
        if JobRun.objects.filter(state="waiting").count() >= limits.JOB_RUNS_WAITING_MAX:
            raise TooManyRuns(limit=limits.JOB_RUNS_WAITING_MAX)
        run = rows.request(raw_connection(), asked)
        zone, announcement = rows.request_announcement(run, asked)
        announce_all(zone=zone, announcements=[announcement])
    request_task(RUN_JOBS)
    return find_run(job=job, run=run)


def cancel_run(*, job: str, run: int) -> Run:
    """One that waits ends at once, one that is under way soon. Raises UnknownRun, RunOver,
    RunPublishing.
    """
    find_run(job=job, run=run)
    with transaction.atomic():
        cancelled = rows.cancel(raw_connection(), run)
        found = find_run(job=job, run=run)
        over = found.state not in ("waiting", "running")
        if not cancelled:
            raise (RunOver if over else RunPublishing)(run=run)
        if over:
            zone, announcement = rows.end_announcement(found, CANCELLED)
            announce_all(zone=zone, announcements=[announcement])
    return found


def read_run_plan(env: Env, run: Run) -> list[PlannedAction]:
    """What the run's plan wants done. Raises NoPlan."""
    if run.state != "completed":
        raise NoPlan(state=run.state)
    try:
        return read_plan(folder_of(Path(env.data), run.job, run.id).result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoPlan(state=run.state) from error


def apply_plan(
    *, env: Env, run: Run, by: str, course: ApplyOptions
) -> tuple[list[ActionOutcome], int]:
    """Carry out the plan of a run of the job `retention`, after an event of `system` has said who
    wants it. The outcomes, and for how many acts the time was not enough. Raises NoPlan,
    DatabaseUnavailable; what was reported is done then.
    """
    acts = read_run_plan(env, run)
    if not course.dry_run:
        with transaction.atomic():
            lock_system(raw_connection())  # a transaction begins with its first statement
            attributes = {"run": run.id, "by": by, "acts": len(acts)}
            announce(zone=run.params.get("zone"), type=APPLIED, attributes=attributes)
    try:
        outcomes = asyncio.run(_carried_out(env, acts, course))
    except CONNECTION_ERRORS as error:
        raise DatabaseUnavailable() from error
    return outcomes, len(acts) - len(outcomes)


def counts(outcomes: Iterable[ActionOutcome]) -> dict[str, int]:
    """How many are `done`, `refused` and `unchanged`."""
    found = Counter(one.outcome for one in outcomes)
    return {name: found[name] for name in get_args(Done)}


async def _carried_out(
    env: Env, acts: list[PlannedAction], course: ApplyOptions
) -> list[ActionOutcome]:
    hooks = RetentionHooks(needs=log_retention.needs, zones=zone_names)
    clock = SystemClock()
    ends_s = clock.monotonic_s() + course.seconds
    outcomes: list[ActionOutcome] = []
    connection = await connect(env.database_direct_url, name="eventhub retention")
    try:
        archive = ArchiveFolder(env.archive_url) if env.archive_url else None
        hub = ApplyTarget(connection, hooks, clock, archive)
        async with aclosing(apply_actions(hub, acts, dry_run=course.dry_run)) as done:
            async for outcome in done:
                outcomes.append(outcome)
                course.report(outcome)
                if clock.monotonic_s() >= ends_s:
                    break
    finally:
        await connection.close()
    return outcomes
