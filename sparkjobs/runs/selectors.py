"""Selectors of jobs and their runs. Django module."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from django.conf import settings

from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import NotFound
from sparkjobs.result import File, read_result
from sparkjobs.runs import statements
from sparkjobs.runs.errors import JavaSlow, NoJava, ResultDeleted, ResultElsewhere, UnknownRun
from sparkjobs.runs.folders import RunFolder, folder_of
from sparkjobs.runs.java import find_java
from sparkjobs.runs.jobs import JOBS, job_named
from sparkjobs.runs.statements import Run


def list_runs(after: tuple[Any, ...] | None, count: int, *, job: str) -> list[Run]:
    """Return a job's runs, newest first. Raises UnknownJob."""
    [before] = after or (None,)
    return statements.runs(raw_connection(), job=job_named(job).name, before=before, count=count)


def find_run(*, job: str, run: int) -> Run:
    """Return a run. Raises UnknownJob, UnknownRun."""
    found = statements.runs(raw_connection(), job=job_named(job).name, ids=[run])
    if not found:
        raise UnknownRun(field="run")
    return found[0]


def list_jobs(*, clock: Clock) -> dict[str, Any]:
    """Return all jobs with their newest runs, and whether this process can run Spark."""
    kinds = {"running": "running", "waiting": "retry"}  # any other state: `last`
    found = statements.newest(raw_connection())
    newest = {(run.job, kinds.get(run.state, "last")): run for run in found}
    jobs = [
        {
            "name": kind.name,
            "about": kind.about,
            "schedule": kind.schedule and kind.schedule.text(),
            "next_at": kind.schedule and kind.schedule.next_us(clock.now_us()),
            **{name: newest.get((kind.name, name)) for name in ("running", "last", "retry")},
        }
        for kind in JOBS.values()
    ]
    return {"jobs": jobs, "spark": _spark()}


def _spark() -> dict[str, Any]:
    env = settings.ENV
    found = {"master": env.spark_master, "java": None, "problem": ""}
    try:
        return {**found, "java": find_java(env.java_home).version}
    except (NoJava, JavaSlow) as error:
        return {**found, "problem": error.message}


def with_result(run: Run) -> Any:
    """Return a run with its `details` and `files`. They are empty if it did not complete, if its
    result was deleted, or if its folder is on another machine.
    """
    detailed = SimpleNamespace(**run._asdict(), details={}, files=())
    if run.state == "completed" and not run.result_deleted:
        with suppress(OSError, ValueError, TypeError, KeyError):
            stored = read_result(_folder(run).result)
            detailed.details, detailed.files = dict(stored.result.details), stored.files
    return detailed


def find_file(run: Run, *, name: str) -> tuple[Path, File]:
    """Return a file of a run's result. Raises ResultDeleted, ResultElsewhere, and NotFound for any
    other file.
    """
    if run.result_deleted:
        raise ResultDeleted(run=run.id)
    _require_here(run)
    for file in with_result(run).files:
        path = _folder(run).result / file.name
        if file.name == name and path.is_file():
            return path, file
    raise NotFound("The run's result has no such file.", field="path")


def read_log(run: Run) -> bytes:
    """Return the end of a run's log; empty if there is none. Raises ResultElsewhere."""
    _require_here(run)
    try:
        with _folder(run).log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - limits.JOB_LOG_SHOWN_BYTES))
            return file.read(limits.JOB_LOG_SHOWN_BYTES)
    except FileNotFoundError:
        return b""


def _require_here(run: Run) -> None:
    """Raise ResultElsewhere if a completed run's folder is on another machine."""
    if run.state == "completed" and not _folder(run).root.exists():
        raise ResultElsewhere(run=run.id)


def _folder(run: Run) -> RunFolder:
    return folder_of(Path(settings.ENV.data), run.job, run.id)
