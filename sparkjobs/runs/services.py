"""Services of jobs: request and cancel runs, and apply retention plans. Django module."""

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
from eventhub.base.broker import RUN_JOBS, request_task, require_workers
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.eventlog.streams import lock_system
from eventhub.postgresql.connections import CONNECTION_ERRORS, connect
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import CANCELLED
from sparkjobs.runs.errors import NoPlan, ResultElsewhere, RunOver, RunPublishing, TooManyRuns
from sparkjobs.runs.folders import folder_of
from sparkjobs.runs.models import JobRun
from sparkjobs.runs.params import check_params
from sparkjobs.runs.retention.apply import ActionOutcome, ApplyTarget, Done, apply_actions
from sparkjobs.runs.retention.plan import PlannedAction, read_plan
from sparkjobs.runs.selectors import find_run
from sparkjobs.runs.statements import Run, RunRequest

APPLIED = "retention.applied"


class ApplyOptions(NamedTuple):
    """The options of applying a plan."""

    dry_run: bool = False
    seconds: float = float("inf")  # time limit
    report: Callable[[ActionOutcome], None] = lambda _: None  # called with each outcome


def request_run(*, job: str, params: dict[str, Any], requested_by: str) -> Run:
    """Request a run, which starts as soon as a worker is free. Raises UnknownJob, TooManyRuns,
    RedisOff, and the errors of the parameters.
    """
    require_workers()
    requested = RunRequest(job, check_params(job, params), requested_by)
    with transaction.atomic():
        if JobRun.objects.filter(state="waiting").count() >= limits.JOB_RUNS_WAITING_MAX:
            raise TooManyRuns(limit=limits.JOB_RUNS_WAITING_MAX)
        run = statements.request(raw_connection(), requested)
        zone, announcement = statements.request_announcement(run, requested)
        announce_all(zone=zone, announcements=[announcement])
    request_task(RUN_JOBS)
    return find_run(job=job, run=run)


def cancel_run(*, job: str, run: int) -> Run:
    """Cancel a run: a waiting one at once, a running one soon. Raises UnknownRun, RunOver,
    RunPublishing.
    """
    find_run(job=job, run=run)
    with transaction.atomic():
        cancelled = statements.cancel(raw_connection(), run)
        found = find_run(job=job, run=run)
        over = found.state not in ("waiting", "running")
        if not cancelled:
            raise (RunOver if over else RunPublishing)(run=run)
        if over:
            zone, announcement = statements.end_announcement(found, CANCELLED)
            announce_all(zone=zone, announcements=[announcement])
    return found


def read_run_plan(env: Env, run: Run) -> list[PlannedAction]:
    """Return the actions of a run's plan. Raises NoPlan, ResultElsewhere."""
    if run.state != "completed":
        raise NoPlan(state=run.state)
    folder = folder_of(Path(env.data), run.job, run.id)
    if not folder.root.exists():
        raise ResultElsewhere(run=run.id)
    try:
        return read_plan(folder.result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoPlan(state=run.state) from error


def apply_plan(*, env: Env, run: Run, options: ApplyOptions) -> tuple[list[ActionOutcome], int]:
    """Announce in `system` that the plan of a retention run is applied, then apply it. Return the
    outcomes, and the number of actions for which the time did not suffice. Raises NoPlan,
    DatabaseUnavailable; the reported outcomes are final even then.
    """
    actions = read_run_plan(env, run)
    if not options.dry_run:
        with transaction.atomic():
            lock_system(raw_connection())  # must be the transaction's first statement
            attributes = {"run": run.id, "actions": len(actions)}
            announce(zone=run.params.get("zone"), type=APPLIED, attributes=attributes)
    try:
        outcomes = asyncio.run(_apply(env, actions, options))
    except CONNECTION_ERRORS as error:
        raise DatabaseUnavailable() from error
    return outcomes, len(actions) - len(outcomes)


def counts(outcomes: Iterable[ActionOutcome]) -> dict[str, int]:
    """Count the outcomes `done`, `refused` and `unchanged`."""
    found = Counter(each.outcome for each in outcomes)
    return {name: found[name] for name in get_args(Done)}


async def _apply(
    env: Env, actions: list[PlannedAction], options: ApplyOptions
) -> list[ActionOutcome]:
    hooks = RetentionHooks(needs=log_retention.lowest_needed_sequences, zones=zone_names)
    clock = SystemClock()
    ends_s = clock.monotonic_s() + options.seconds
    outcomes: list[ActionOutcome] = []
    connection = await connect(env.database_direct_url, name="eventhub retention")
    try:
        archive = ArchiveFolder(env.archive_url) if env.archive_url else None
        target = ApplyTarget(connection, hooks, clock, archive)
        applied = apply_actions(target, actions, dry_run=options.dry_run)
        async with aclosing(applied):
            async for outcome in applied:
                outcomes.append(outcome)
                options.report(outcome)
                if clock.monotonic_s() >= ends_s:
                    break
    finally:
        await connection.close()
    return outcomes
