"""Reads of jobs and their runs."""

from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from eventhub import limits
from eventhub.access.system import raw_connection
from eventhub.clock import Clock
from eventhub.errors import NotFound
from eventhub.jobs import rows
from eventhub.jobs.errors import JavaSlow, NoJava, ResultGone, UnknownRun
from eventhub.jobs.folders import Folder, folder_of
from eventhub.jobs.java import find_java
from eventhub.jobs.kinds import KINDS, Kind, kind_of
from eventhub.jobs.rows import Run
from sparkjobs.result import File, read_result


class Shown(NamedTuple):
    """A run with what it left."""

    run: Run
    details: dict[str, Any]
    files: tuple[File, ...]


class Job(NamedTuple):
    """A job and its newest runs."""

    kind: Kind
    next_us: int | None  # when it is asked for by itself
    running: Run | None
    last: Run | None
    repeat: Run | None

    @property
    def timetable(self) -> str | None:
        return self.kind.timetable and self.kind.timetable.text()


class Spark(NamedTuple):
    """As this process finds it."""

    master: str
    java: str | None  # its version
    problem: str  # why jobs cannot run, in words


class Jobs(NamedTuple):
    jobs: list[Job]
    spark: Spark


def list_jobs(*, clock: Clock) -> Jobs:
    """All jobs, and how Spark stands."""
    newest = rows.newest(raw_connection())
    running = {run.job: run for run in newest if not run.over}
    last = {run.job: run for run in newest if run.over}
    repeats = {run.job: run for run in rows.waiting_repeats(raw_connection())}
    found = [
        Job(
            kind,
            kind.timetable and kind.timetable.next_us(clock.now_us()),
            *(runs.get(kind.name) for runs in (running, last, repeats)),
        )
        for kind in KINDS.values()
    ]
    return Jobs(found, _spark())


def list_runs(*, job: str, before: int | None, count: int) -> list[Run]:
    """The newest first. Raises UnknownJob."""
    return rows.history(raw_connection(), kind_of(job).name, before, count)


def find_run(*, job: str, run: int) -> Run:
    """Raises UnknownJob, UnknownRun."""
    found = rows.find(raw_connection(), run, kind_of(job).name)
    if found is None:
        raise UnknownRun(field="run")
    return found


def show_run(*, job: str, run: int) -> Shown:
    """Nothing is left of a run that did not complete, whose result is gone, or whose folder is on
    another machine.
    """
    found = find_run(job=job, run=run)
    if found.state != "completed" or found.result_gone:
        return Shown(found, {}, ())
    try:
        stored = read_result(_folder(found).result)
    except (OSError, ValueError, TypeError, KeyError):
        return Shown(found, {}, ())
    return Shown(found, dict(stored.result.details), stored.files)


def find_file(*, job: str, run: int, name: str) -> tuple[Path, File]:
    """One of the files that the run's result names. Raises ResultGone, and NotFound for any other
    file.
    """
    shown = show_run(job=job, run=run)
    if shown.run.result_gone:
        raise ResultGone(run=shown.run.id)
    for file in shown.files:
        path = _folder(shown.run).result / file.name
        if file.name == name and path.is_file():
            return path, file
    raise NotFound("The run's result has no such file.", field="path")


def read_log(*, job: str, run: int) -> bytes:
    """The end of the run's log; empty if there is none."""
    found = find_run(job=job, run=run)
    try:
        with _folder(found).log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - limits.JOB_LOG_SHOWN_BYTES))
            return file.read(limits.JOB_LOG_SHOWN_BYTES)
    except FileNotFoundError:
        return b""


def _folder(run: Run) -> Folder:
    return folder_of(Path(settings.ENV.data), run.job, run.id)


def _spark() -> Spark:
    env = settings.ENV
    try:
        java = find_java(env.java_home)
    except (NoJava, JavaSlow) as error:
        return Spark(env.spark_master, None, error.message)
    return Spark(env.spark_master, java.version, "")
