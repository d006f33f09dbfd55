"""Does one run of a job, from its begun row to its noted end: inputs, Spark, result. SQL module.

Whatever ends it: nothing of its work stays, and its result is seen only if the row says that it
has completed.
"""

import hashlib
import math
import os
import threading
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.env import Env
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import get_logger
from eventhub.eventlog.errors import StorageFull
from eventhub.postgresql.connections import blocking
from sparkjobs.job_spec import JobSpec, write_spec
from sparkjobs.result import JobResult, StoredResult, read_result, write_result
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import RunStopped, StopSignal
from sparkjobs.runs.context import RunContext
from sparkjobs.runs.driver import DriverProgress, drive
from sparkjobs.runs.errors import BadResult, JavaSlow, ResultTooLarge
from sparkjobs.runs.export.snapshot import ExportRequest, export_inputs
from sparkjobs.runs.folders import ROOT, clear_leftovers, folder_of
from sparkjobs.runs.heartbeat import Heartbeat
from sparkjobs.runs.hooks import JobHooks, hooks_of
from sparkjobs.runs.jobs import job_named
from sparkjobs.runs.launch import DriverCommand, SparkSettings, driver_command
from sparkjobs.runs.rows import Ending, Run, RunProgress

log = get_logger(__name__)
INTERNAL = "internal"  # the reason of what is no error of the hub's own tree
_NOTE_INTERVAL_S = 1.0


class RunnerSettings(NamedTuple):
    """What a run needs of the hub that it is of."""

    database_url: str
    data: Path
    archive_url: str
    spark: SparkSettings

    @classmethod
    def of(cls, env: Env) -> "RunnerSettings":
        spark = SparkSettings(env.spark_master, env.spark_memory, env.spark_conf, env.java_home)
        return cls(env.database_direct_url, Path(env.data).resolve(), env.archive_url, spark)


class RunObserver(NamedTuple):
    """Who tells a run to end, and who is told how far it is."""

    stop: StopSignal
    hear: Callable[[RunProgress], None]
    clock: Clock


def perform(hub: RunnerSettings, run: Run, watch: RunObserver) -> Run:
    """Do a run that has begun, and note how it ended: as it is told then. Raises nothing that is
    the run's own; DatabaseUnavailable if its end cannot be noted.
    """
    work = _Work(hub, run, watch)
    with work.beat.going():
        ending = work.done()
        work.folder.clear(result=ending.state != "completed")
        work.beat.say()
        if not _noted(hub, run, ending):
            work.folder.clear(result=True)
    with blocking(hub.database_url, name="job") as connection:
        for job, old in rows.drop_results(connection):
            folder_of(hub.data, job, old).clear(result=True)
            log.info("job_result_dropped", job=job, run=old)
        return rows.find(connection, run.id) or run


class _Work:
    """One run's work, step after step."""

    def __init__(self, hub: RunnerSettings, run: Run, watch: RunObserver) -> None:
        self.folder = folder_of(hub.data, run.job, run.id)
        filled = hub.data if job_named(run.job).large else None
        self.beat = Heartbeat(hub.database_url, run.id, watch.stop, watch.clock, filled)
        self._hub = hub
        self._run = run
        self._watch = watch
        self._engine = ""
        self._is_published = False

    def done(self) -> Ending:
        """Do it all, and say how it ended."""
        run = self._run
        try:
            result = self._result()
            return Ending(
                "completed",
                verdict=result.verdict,
                summary=result.summary,
                figures={name: _finite(figure) for name, figure in result.figures.items()},
                result_bytes=self.folder.result_bytes(),
            )
        except RunStopped:
            return self._watch.stop.why or Ending("interrupted")
        except EventHubError as error:
            log.warning("job_failed", job=run.job, run=run.id, reason=error.code)
            return Ending("failed", error.code, error.message[: limits.JOB_DETAIL_CHARS_MAX])
        except OSError as error:
            log.exception("job_failed", job=run.job, run=run.id)
            if error.errno == ENOSPC:
                return Ending("failed", StorageFull.code, "The disk of the data folder is full.")
            words = os.strerror(error.errno) if error.errno else EventHubError().message
            return Ending("failed", INTERNAL, words)
        except Exception:
            log.exception("job_failed", job=run.job, run=run.id)
            return Ending("failed", INTERNAL, EventHubError().message)

    def _result(self) -> JobResult:
        self._clear_before()
        hooks, context = hooks_of(self._run.job), self._context()
        with hooks.alone(context):
            self._engine = "local builder"
            result = hooks.local(context)
            if result is not None:
                stored = write_result(self.folder.unfinished, result)
            else:
                self._engine = f"spark {self._hub.spark.master}"
                stored = self._by_spark(hooks, context)
        self._publishing()
        self.folder.publish()
        return stored.result

    def _publishing(self) -> None:
        """From here on the run goes to its end. Raises Stopped, DatabaseUnavailable."""
        stop, run = self._watch.stop, self._run.id
        stop.check()
        if self._is_published:
            return
        if not _kept_asking(self._hub, lambda connection: rows.publish(connection, run)):
            self.beat.say()  # which hears why
            stop.check()
            raise RunStopped
        stop.forget()
        self._is_published = True

    def _by_spark(self, hooks: JobHooks, context: RunContext) -> StoredResult:
        self._run_driver(self._export())
        self._told("checking the result")
        stored = _checked(self.folder.unfinished)
        self._told("publishing the result")
        changed = hooks.publish(context, stored)
        return stored if changed is None else write_result(self.folder.unfinished, changed)

    def _clear_before(self) -> None:
        """What earlier runs left that did not come to their end; the lease is ours."""
        job = self._run.job
        with blocking(self._hub.database_url, name="job") as connection:
            kept = rows.delete_old_runs(connection, job)
        clear_leftovers(self._hub.data, job, kept)
        self.folder.make()

    def _context(self) -> RunContext:
        hub, folder = self._hub, self.folder
        return RunContext(
            self._run.id,
            self._run.params,
            hub.data,
            hub.database_url,
            hub.archive_url,
            folder.unfinished,
            folder.inputs,
            folder.work,
            self._told,
            self._publishing,
        )

    def _export(self) -> JobSpec:
        """Write the inputs, and the order that names them."""
        run, hub, folder, kind = self._run, self._hub, self.folder, job_named(self._run.job)
        params = run.params
        streams = params.get("stream_ids")
        snapshot = export_inputs(
            ExportRequest(
                hub.database_url,
                hub.archive_url,
                folder.inputs,
                kind.tables,
                zone_id=params.get("zone_id"),
                stream_ids=None if streams is None else tuple(streams),
                since_us=params.get("since_us"),
                until_us=params.get("until_us"),
                events=kind.events,
            ),
            lambda table, count: self._told(f"exporting {table}", count),
        )
        places = (str(folder.inputs), str(folder.work), str(folder.unfinished))
        order = JobSpec(run.job, run.id, params, *places, hub.archive_url, snapshot.now_us)
        write_spec(folder.work, order)
        return order

    def _run_driver(self, order: JobSpec) -> None:
        self._told("starting Spark")
        java = self._hub.data / ROOT / "java"
        name = f"eventhub {order.job} {order.run}"
        drive(self._launched(name, java), self.folder.log, self._watch.stop, self._heard_of)

    def _launched(self, name: str, java: Path) -> DriverCommand:
        """Raises what `launch` raises; JavaSlow after some tries."""
        for number in range(1, limits.JOB_JAVA_ATTEMPTS):
            try:
                return driver_command(self._hub.spark, self.folder, name, java)
            except JavaSlow:
                log.warning("java_slow", run=self._run.id, number=number)
                self._told("waiting for Java: the machine is overloaded")
        return driver_command(self._hub.spark, self.folder, name, java)

    def _heard_of(self, said: DriverProgress) -> None:
        self._say(RunProgress(said.phase, **said.counts, engine=self._engine))

    def _told(self, phase: str, rows_done: int = 0) -> None:
        """Raises Stopped."""
        self._watch.stop.check()
        counts = {} if rows_done else self.beat.counts()
        self._say(RunProgress(phase, rows_done, engine=self._engine, **counts))

    def _say(self, heard: RunProgress) -> None:
        self.beat.heard = heard
        self._watch.hear(heard)


def _finite(figure: float | int | str | None) -> float | int | str | None:
    """None for what JSON has no number for."""
    return None if isinstance(figure, float) and not math.isfinite(figure) else figure


def _checked(folder: Path) -> StoredResult:
    """The result, if it and its files are what it says. Raises BadResult, ResultTooLarge."""
    try:
        stored = read_result(folder)
        for file in stored.files:
            with (folder / file.name).open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
                    raise BadResult(f"{file.name} is not what the job has written.")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadResult() from error
    size = sum(file.bytes for file in stored.files)
    if size > limits.JOB_RESULT_BYTES_MAX:
        told = (
            f"It has {size:,} bytes, of {limits.JOB_RESULT_BYTES_MAX:,} that the hub keeps of one"
        )
        raise ResultTooLarge(f"{told}. {ResultTooLarge().message}")
    return stored


def _noted(hub: RunnerSettings, run: Run, ending: Ending) -> bool:
    """Note the end. False if the run was taken for gone. Raises DatabaseUnavailable."""

    def note(connection: rows.Connection) -> bool:
        if rows.end(connection, run, ending):
            return True
        found = rows.find(connection, run.id)  # it may have been noted after all
        return found is not None and found.state == ending.state

    return _kept_asking(hub, note)


def _kept_asking(hub: RunnerSettings, ask: Callable[[rows.Connection], bool]) -> bool:
    """What the database answers, waited for as long as the lease may be ours. Raises
    DatabaseUnavailable.
    """
    pause = threading.Event()
    tries = int(limits.JOB_LEASE_S / _NOTE_INTERVAL_S)
    for _ in range(tries - 1):
        try:
            with blocking(hub.database_url, name="job") as connection:
                return ask(connection)
        except DatabaseUnavailable:
            pause.wait(_NOTE_INTERVAL_S)
    with blocking(hub.database_url, name="job") as connection:
        return ask(connection)
