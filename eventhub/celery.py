"""The Celery application: its settings and tasks. Composition root. SQL module.

`celery -A eventhub worker` runs a worker of all queues, `celery -A eventhub beat` the timetable.
Redis carries messages only; if it loses all of them, nothing is lost.
"""

import asyncio
import logging
from functools import cache
from pathlib import Path
from typing import Any

from celery import Celery, signals
from kombu import Queue

from delivery.callbacks import claims
from delivery.deletion import DataStores, Deletion
from delivery.health.heartbeat import HeartbeatWriter
from delivery.partitions.retire import run_retirement
from delivery.recovery.task import ReplayExecutor
from delivery.statistics import counting
from eventhub.base import limits, logs
from eventhub.base.broker import (
    ARCHIVE,
    BUILD_INDEXES,
    DELETE_DUE,
    DELIVER,
    QUEUES,
    REPLAY,
    RUN_JOBS,
    SLOTS,
    UPKEEP,
    broker_url,
    threads,
)
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env, refuse, require_env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.archive.process import ArchiveProcess
from eventhub.worker.beat import TIMETABLE
from eventhub.worker.delivery_task import DeliverTask
from eventhub.worker.steps import attach
from eventhub.worker.task_base import HubTask, progress
from registrations.endpoints.expiry import delete_expired
from registrations.match_index.builds.task import IndexBuilder
from registrations.purge import VersionPurge
from sparkjobs.runs.task import RunPerformer, request_scheduled_run

app = Celery("eventhub", task_cls=HubTask)
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    timezone="UTC",
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "socket_connect_timeout": limits.CONNECT_TIMEOUT_S,
        "polling_interval": limits.BROKER_POLL_S,
    },
    task_default_queue=UPKEEP,
    task_queues=[Queue(name) for name in SLOTS],
    task_routes={task: {"queue": queue} for task, queue in QUEUES.items()},
    worker_direct=True,  # a queue for each worker, for the units of its own dispatcher
    worker_pool="threads",
    worker_concurrency=threads(SLOTS),
    worker_prefetch_multiplier=1,
    worker_consumer="eventhub.worker.celery_consumer:SteadyConsumer",
    worker_redirect_stdouts=False,
    beat_schedule=TIMETABLE,
    beat_max_loop_interval=limits.HEALTH_HEARTBEAT_INTERVAL_S,
    beat_scheduler="eventhub.worker.beat:SteadyScheduler",
)


def configure() -> None:
    """Set what depends on the environment."""
    app.conf.broker_url = broker_url(require_env().redis_url)


configure()
_archiving = ArchiveProcess()
_indexing = IndexBuilder(SystemClock())
_purging = VersionPurge(SystemClock())
_deletion = Deletion(SystemClock())
_running = RunPerformer()
_replays = ReplayExecutor(SystemClock())
progress.update(
    {ARCHIVE: _archiving.at_work, BUILD_INDEXES: _indexing.at_work, RUN_JOBS: _running.at_work}
)


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _configure_logs(**_: Any) -> None:
    """Configure logging; with this handler Celery does not."""
    env = read_env()
    logs.configure(env.log_format, env.log_level)
    quiet = ("celery.worker.strategy", "celery.worker.request", "celery.app.trace", "celery.beat")
    for name in quiet:
        logging.getLogger(name).setLevel("WARNING")  # a line for each unit would be 20 a second


@app.task(  # type: ignore[untyped-decorator]
    name=DELIVER,
    base=DeliverTask,
    bind=True,
    autoretry_for=(Exception,),
    throws=(DatabaseUnavailable,),
    max_retries=None,
    retry_backoff=True,
    retry_backoff_max=limits.CALLBACK_UNIT_RETRY_S_MAX,
    retry_jitter=False,
)
def deliver(self: DeliverTask) -> int:
    """Claim due deliveries, post them concurrently, and write the results; return the number
    claimed.

    A unit ends when no due delivery fits this worker's free slots, or after some seconds; slow
    requests go on without it. PostgreSQL schedules the retries of deliveries; this task's policy
    those of a unit that failed because the database was unavailable.
    """
    by = "worker" if self.request.is_eager else "broker"
    return self.runner.run(by) if self.runner else 0


attach(app)


@cache
def _heartbeats() -> HeartbeatWriter:
    return HeartbeatWriter(read_env().database_url)


@app.task(name="delivery.retire", waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def retire() -> None:
    """Archive and drop expired partitions of deliveries, attempts and listeners."""
    env = read_env()
    asyncio.run(run_retirement(env.database_direct_url, env.archive_url))


@app.task(name="delivery.delete_leftovers", waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def delete_leftovers() -> None:
    """Delete rows of ordered lanes that have been unused for long, rows of deleted endpoints that
    nothing reads any more, and statistics of endpoints that are older than what is shown.
    """
    asyncio.run(claims.delete_leftovers(read_env().database_url))
    asyncio.run(counting.forget(read_env().database_url))


@app.task(name="registrations.purge_versions", waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def purge_versions() -> None:
    """Delete ended versions of registrations that nothing can need any more."""
    env = read_env()
    _purging.run(env.database_direct_url, Path(env.data))


@app.task(name="registrations.delete_expired", waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def delete_expired_endpoints() -> None:
    """Delete the endpoints that have expired, with the registrations that name them."""
    delete_expired(read_env().database_direct_url)


@app.task(name=DELETE_DUE, waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def delete_due() -> None:
    """Delete everything whose grace period has ended: types, channels, streams and zones."""
    env = read_env()
    stores = DataStores(Path(env.data), env.archive_url, env.redis_url)
    if _deletion.run(env.database_direct_url, stores) and env.redis_url:
        delete_due.apply_async()


@app.task(name=ARCHIVE)  # type: ignore[untyped-decorator]
def archive() -> None:
    """Archive the sealed segments that are due."""
    env = read_env()
    _heartbeats().beat("archiver")
    _archiving.run(env.database_direct_url, env.archive_url)


@app.task(name=BUILD_INDEXES)  # type: ignore[untyped-decorator]
def build_indexes() -> None:
    """Build the match indexes that are requested or due."""
    env = read_env()
    _heartbeats().beat("indexer")
    _indexing.run(env.database_direct_url, Path(env.data))


@app.task(name=REPLAY, waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def replay() -> None:
    """Execute the running replay runs for some seconds, and go on in another task."""
    env = read_env()
    if _replays.run(env.database_direct_url, env.archive_url) and env.redis_url:
        replay.apply_async(expires=limits.TASK_REQUEST_EXPIRY_S)


@app.task(name=RUN_JOBS, waits=True, max_retries=None)  # type: ignore[untyped-decorator]
def run_jobs() -> None:
    """Execute the waiting runs of jobs."""
    _running.run(read_env().database_direct_url)


@app.task(  # type: ignore[untyped-decorator]
    name="jobs.ask",
    waits=True,
    autoretry_for=(DatabaseUnavailable,),
    max_retries=limits.JOB_REQUEST_RETRIES_MAX,
    default_retry_delay=limits.JOB_REQUEST_RETRY_PAUSE_S,
)
def ask_job(job: str) -> None:
    """Request a run of a job, as the timetable does. Retry later if the database is unavailable."""
    request_scheduled_run(read_env().database_direct_url, job)
    run_jobs.apply_async()


@signals.beat_init.connect  # type: ignore[untyped-decorator]
def _require_redis(**_: Any) -> None:
    if not read_env().redis_url:
        refuse(
            "The timetable (celery beat) sends its tasks through Redis, but REDIS_URL is not set. "
            "Set it to the workers' value; `manage.py up` starts an embedded Redis."
        )


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _look_for_jobs(sender: Any, **_: Any) -> None:
    """Start the runs of a worker that ended, after their leases have expired, and continue its
    deletions.
    """
    if sender.app.amqp.queues.consume_from.get(QUEUES[RUN_JOBS]) and read_env().redis_url:
        run_jobs.apply_async(countdown=limits.JOB_LEASE_S + 1.0)
        delete_due.apply_async()


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop_work(**_: Any) -> None:
    _archiving.stop()
    _indexing.stop()
    _running.stop()
    _replays.stop()
    if DeliverTask.runner is not None:
        DeliverTask.runner.dispatcher.leave()
