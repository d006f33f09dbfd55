"""The performance of one run, from its started row to its recorded end: inputs, Spark, result.
SQL module.

However a run ends, none of its scratch files remain, and its result is visible only if the row says
that it completed.
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
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import RunStopped, StopSignal
from sparkjobs.runs.context import RunContext
from sparkjobs.runs.driver import DriverProgress, drive
from sparkjobs.runs.errors import BadResult, JavaSlow, ResultTooLarge
from sparkjobs.runs.export.snapshot import ExportRequest, export_inputs
from sparkjobs.runs.folders import ROOT, clear_leftovers, folder_of
from sparkjobs.runs.heartbeat import RunHeartbeat
from sparkjobs.runs.hooks import JobHooks, hooks_of
from sparkjobs.runs.jobs import job_named
from sparkjobs.runs.launch import (
    DriverCommand,
    SparkSettings,
    driver_command,
    local_driver_command,
)
from sparkjobs.runs.statements import Ending, Run, RunProgress

log = get_logger(__name__)
INTERNAL = "internal"  # the reason of errors outside the hub's error tree
_RETRY_INTERVAL_S = 1.0


class RunnerSettings(NamedTuple):
    """The settings of the hub that a run needs."""

    database_url: str
    data: Path
    archive_url: str
    spark: SparkSettings

    @classmethod
    def of(cls, env: Env) -> "RunnerSettings":
        spark = SparkSettings(env.spark_master, env.spark_memory, env.spark_conf, env.java_home)
        return cls(env.database_direct_url, Path(env.data).resolve(), env.archive_url, spark)


class RunObserver(NamedTuple):
    """The stop signal of a run, and the receiver of its progress."""

    stop: StopSignal
    report: Callable[[RunProgress], None]
    clock: Clock


def perform(settings: RunnerSettings, run: Run, observer: RunObserver) -> Run:
    """Perform a started run, record its end, and return its final row. The run's own errors are
    recorded, not raised; raises DatabaseUnavailable if the end cannot be recorded.
    """
    performance = _RunExecution(settings, run, observer)
    with performance.heartbeat.beating():
        ending = performance.perform()
        performance.folder.clear(result=ending.state != "completed")
        performance.heartbeat.send()
        if not _recorded(settings, run, ending):
            performance.folder.clear(result=True)
    with blocking(settings.database_url, name="job") as connection:
        for job, old in statements.drop_results(connection):
            folder_of(settings.data, job, old).clear(result=True)
            log.info("job_result_deleted", job=job, run=old)
        return statements.find(connection, run.id) or run


class _RunExecution:
    """The steps of one run."""

    def __init__(self, settings: RunnerSettings, run: Run, observer: RunObserver) -> None:
        self.folder = folder_of(settings.data, run.job, run.id)
        watched = settings.data if job_named(run.job).large else None
        self.heartbeat = RunHeartbeat(
            settings.database_url, run.id, observer.stop, observer.clock, watched
        )
        self._settings = settings
        self._run = run
        self._observer = observer
        self._engine = ""
        self._is_published = False

    def perform(self) -> Ending:
        """Perform all steps and return how the run ended."""
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
            return self._observer.stop.ending or Ending("interrupted")
        except EventHubError as error:
            log.warning("job_failed", job=run.job, run=run.id, reason=error.code)
            return Ending("failed", error.code, error.message[: limits.JOB_DETAIL_CHARS_MAX])
        except OSError as error:
            log.exception("job_failed", job=run.job, run=run.id)
            if error.errno == ENOSPC:
                return Ending("failed", StorageFull.code, "The disk of the data folder is full.")
            message = os.strerror(error.errno) if error.errno else EventHubError().message
            return Ending("failed", INTERNAL, message)
        except Exception:
            log.exception("job_failed", job=run.job, run=run.id)
            return Ending("failed", INTERNAL, EventHubError().message)

    def _result(self) -> JobResult:
        self._prepare_folder()
        hooks, context = hooks_of(self._run.job), self._context()
        with hooks.lock(context):
            self._engine = "local builder"
            result = hooks.local(context)
            if result is not None:
                stored = write_result(self.folder.unfinished, result)
            else:
                self._engine = ""
                stored = self._drive(hooks, context)
        self._publishing()
        self.folder.publish()
        return stored.result

    def _publishing(self) -> None:
        """Make the run unstoppable. Raises RunStopped, DatabaseUnavailable."""
        stop, run = self._observer.stop, self._run.id
        stop.check()
        if self._is_published:
            return
        if not _retrying(self._settings, lambda connection: statements.publish(connection, run)):
            self.heartbeat.send()  # which receives the reason
            stop.check()
            raise RunStopped
        stop.disarm()
        self._is_published = True

    def _drive(self, hooks: JobHooks, context: RunContext) -> StoredResult:
        spec = self._export()
        if hooks.is_local(spec):
            self._engine = "local"
            driver = local_driver_command(self.folder)
        else:
            self._engine = f"spark {self._settings.spark.master}"
            self._report("starting Spark")
            launcher = self._settings.data / ROOT / "java"
            driver = self._driver(f"eventhub {spec.job} {spec.run}", launcher)
        drive(driver, self.folder.log, self._observer.stop, self._report_driver)
        self._report("verifying the result")
        stored = _verified(self.folder.unfinished)
        self._report("publishing the result")
        changed = hooks.publish(context, stored)
        return stored if changed is None else write_result(self.folder.unfinished, changed)

    def _prepare_folder(self) -> None:
        """Remove the leftovers of earlier runs, which is safe under the lease, and create this
        run's folder.
        """
        job = self._run.job
        with blocking(self._settings.database_url, name="job") as connection:
            retained = statements.delete_old_runs(connection, job)
        clear_leftovers(self._settings.data, job, retained)
        self.folder.create()

    def _context(self) -> RunContext:
        settings, folder = self._settings, self.folder
        return RunContext(
            self._run.id,
            self._run.params,
            settings.data,
            settings.database_url,
            settings.archive_url,
            folder.unfinished,
            folder.inputs,
            folder.work,
            self._report,
            self._publishing,
        )

    def _export(self) -> JobSpec:
        """Write the inputs and the driver's spec."""
        run, settings, folder = self._run, self._settings, self.folder
        job, params = job_named(run.job), run.params
        streams = params.get("stream_ids")
        snapshot = export_inputs(
            ExportRequest(
                settings.database_url,
                settings.archive_url,
                folder.inputs,
                job.tables,
                zone_id=params.get("zone_id"),
                stream_ids=None if streams is None else tuple(streams),
                since_us=params.get("since_us"),
                until_us=params.get("until_us"),
                events=job.events,
            ),
            lambda table, count: self._report(f"exporting {table}", count),
        )
        folders = (str(folder.inputs), str(folder.work), str(folder.unfinished))
        spec = JobSpec(run.job, run.id, params, *folders, settings.archive_url, snapshot.now_us)
        write_spec(folder.work, spec)
        return spec

    def _driver(self, name: str, launcher: Path) -> DriverCommand:
        """Return the driver's command. Raises what `driver_command` raises; JavaSlow only after
        several attempts.
        """
        for attempt in range(1, limits.JOB_JAVA_ATTEMPTS):
            try:
                return driver_command(self._settings.spark, self.folder, name, launcher)
            except JavaSlow:
                log.warning("java_slow", run=self._run.id, attempt=attempt)
                self._report("waiting for Java: the machine is overloaded")
        return driver_command(self._settings.spark, self.folder, name, launcher)

    def _report_driver(self, progress: DriverProgress) -> None:
        self._set(RunProgress(progress.phase, **progress.counts, engine=self._engine))

    def _report(self, phase: str, rows_done: int = 0) -> None:
        """Report a phase. Raises RunStopped."""
        self._observer.stop.check()
        counts = {} if rows_done else self.heartbeat.counts()
        self._set(RunProgress(phase, rows_done, engine=self._engine, **counts))

    def _set(self, progress: RunProgress) -> None:
        self.heartbeat.progress = progress
        self._observer.report(progress)


def _finite(figure: float | int | str | None) -> float | int | str | None:
    """Replace numbers that JSON cannot represent by None."""
    return None if isinstance(figure, float) and not math.isfinite(figure) else figure


def _verified(folder: Path) -> StoredResult:
    """Read a result and verify its files. Raises BadResult, ResultTooLarge."""
    try:
        stored = read_result(folder)
        for file in stored.files:
            with (folder / file.name).open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
                    raise BadResult(f"The SHA-256 of {file.name} differs from the job's.")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadResult() from error
    size = sum(file.bytes for file in stored.files)
    if size > limits.JOB_RESULT_BYTES_MAX:
        sizes = f"The result has {size:,} bytes; the maximum is {limits.JOB_RESULT_BYTES_MAX:,}"
        raise ResultTooLarge(f"{sizes}. {ResultTooLarge().message}")
    return stored


def _recorded(settings: RunnerSettings, run: Run, ending: Ending) -> bool:
    """Record the end; False if the run counted as dead. Raises DatabaseUnavailable."""

    def record(connection: statements.Connection) -> bool:
        if statements.end(connection, run, ending):
            return True
        found = statements.find(connection, run.id)  # an earlier attempt may have committed
        return found is not None and found.state == ending.state

    return _retrying(settings, record)


def _retrying(settings: RunnerSettings, action: Callable[[statements.Connection], bool]) -> bool:
    """Call the action with a connection, retrying for as long as the lease may be ours. Raises
    DatabaseUnavailable.
    """
    pause = threading.Event()
    attempts = int(limits.JOB_LEASE_S / _RETRY_INTERVAL_S)
    for _ in range(attempts - 1):
        try:
            with blocking(settings.database_url, name="job") as connection:
                return action(connection)
        except DatabaseUnavailable:
            pause.wait(_RETRY_INTERVAL_S)
    with blocking(settings.database_url, name="job") as connection:
        return action(connection)
