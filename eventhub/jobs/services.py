"""Asks for runs of jobs and cancels them. A worker does them (job.py)."""

from typing import Any

from django.db import transaction

from eventhub import limits
from eventhub.access.system import announce_all, raw_connection
from eventhub.jobs import rows
from eventhub.jobs.errors import RunOver, RunPublishing, TooManyRuns
from eventhub.jobs.params import checked
from eventhub.jobs.rows import Asked, Run
from eventhub.jobs.selectors import find_run
from eventhub.jobs.stopping import CANCELLED
from eventhub.soon import RUN_JOBS, require_workers, soon


def ask_run(*, job: str, params: dict[str, Any], requested_by: str) -> Run:
    """A run that begins as soon as a worker is free. Raises UnknownJob, TooManyRuns, RedisOff, and
    what the parameters are refused with.
    """
    require_workers()
    asked = Asked(job, checked(job, params), requested_by)
    connection = raw_connection()
    with transaction.atomic():
        if rows.count_waiting(connection) >= limits.JOB_RUNS_WAITING_MAX:
            raise TooManyRuns(limit=limits.JOB_RUNS_WAITING_MAX)
        run = rows.ask(connection, asked)
        zone, announcement = rows.asked_of(run, asked)
        announce_all(zone=zone, announcements=[announcement])
    soon(RUN_JOBS)
    return find_run(job=job, run=run)


def cancel_run(*, job: str, run: int) -> Run:
    """One that waits ends at once, one that is under way soon. Raises UnknownRun, RunOver,
    RunPublishing.
    """
    found = find_run(job=job, run=run)
    with transaction.atomic():
        if not rows.cancel(raw_connection(), found.id):
            now = find_run(job=job, run=run)
            raise (RunOver if now.over else RunPublishing)(run=found.id)
        found = find_run(job=job, run=run)
        if found.over:
            zone, announcement = rows.ended_of(found, CANCELLED)
            announce_all(zone=zone, announcements=[announcement])
    return found
