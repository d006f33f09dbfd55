"""The Celery application: workers that drain callbacks, and the timetable. Composition root.

`python -m celery -A eventhub.celery worker -P threads -c 4` runs a worker. Its drain is a bootstep
of the worker itself, not of the consumer: it runs whether or not there is a broker. Redis carries
hints only, and with everything in it gone nothing is lost.
"""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps, signals
from celery.concurrency.thread import TaskPool as ThreadPool
from kombu import Connection, Exchange, Queue
from kombu.common import Broadcast

from delivery.callbacks import claims
from delivery.callbacks.drain import Terms
from delivery.callbacks.thread import DrainThread
from delivery.callbacks.wake import Waker
from delivery.forward.retiring import retiring
from delivery.health.heartbeat import Heart
from eventhub import limits, logs
from eventhub.broker import QUEUE, broker_url
from eventhub.clock import SystemClock
from eventhub.env import Env, read_env, refuse, require_env
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog.archive.job import ArchiveJob
from eventhub.eventlog.archive.reader import archive_of
from eventhub.jobs.job import RunJob, ask_by_timetable
from eventhub.preflight import require_flight
from eventhub.schedule import TIMETABLE
from eventhub.soon import BUILD_INDEXES, RUN_JOBS
from registrations.building.job import IndexJob
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.rows import disable
from registrations.purge import VersionPurge

WAKE = "delivery.wake"
# archiving, the building of match indexes and the runs of jobs hold one each for long; one more is
# left for what is short
WORKER_THREADS = 4
_WAKE_EXCHANGE = Exchange("eventhub.wake", type="fanout", durable=False)


app = Celery("eventhub", broker=broker_url(require_env().redis_url))
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
    task_default_queue=QUEUE,
    # a fanout is not stored: with no worker there, hints do not pile up in Redis
    task_queues=(Queue(QUEUE), Broadcast("eventhub.wake", exchange=_WAKE_EXCHANGE)),
    worker_prefetch_multiplier=1,
    worker_concurrency=WORKER_THREADS,
    worker_consumer="eventhub.consumer:SteadyConsumer",
    worker_redirect_stdouts=False,
    beat_schedule=TIMETABLE,
    beat_max_loop_interval=limits.HEALTH_BEAT_INTERVAL_S,
    beat_scheduler="eventhub.beat:SteadyScheduler",
)
_drains: list[DrainThread] = []  # the one of this process, when it is a worker
_archiving = ArchiveJob()
_indexing = IndexJob(SystemClock())
_purging = VersionPurge(SystemClock())
_running = RunJob()


class DrainStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Starts the drain before the consumer looks for its broker, and stops it with the worker."""

    def create(self, worker: Any) -> DrainThread:
        _require_threads(worker.pool_cls)
        drain = DrainThread(_terms(require_flight()), on_failure=_end_worker)
        _drains[:] = [drain]
        return drain


app.steps["worker"].add(DrainStep)


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _configure_logs(**_: Any) -> None:
    """Celery then leaves logging alone."""
    env = read_env()
    logs.configure(env.log_format, env.log_level)
    quiet = ("celery.worker.strategy", "celery.worker.request", "celery.app.trace", "celery.beat")
    for name in quiet:
        logging.getLogger(name).setLevel("WARNING")  # a line for each hint is 20 a second


@app.task(name=WAKE, ignore_result=True)  # type: ignore[untyped-decorator]
def wake() -> None:
    """There may be new deliveries."""
    for drain in _drains:
        drain.wake()


@cache
def _heart() -> Heart:
    return Heart(read_env().database_url)


@app.task(name="delivery.retire", ignore_result=True)  # type: ignore[untyped-decorator]
def retire() -> None:
    """Archive and drop the partitions of deliveries, attempts and listens whose time is over."""
    env = read_env()
    asyncio.run(retiring(env.database_direct_url, env.archive_url))


@app.task(name="delivery.forget_lanes", ignore_result=True)  # type: ignore[untyped-decorator]
def forget_lanes() -> None:
    """Delete the rows of ordered lanes that nobody has used for long."""
    asyncio.run(claims.forget_lanes(read_env().database_url))


@app.task(name="registrations.purge_versions", ignore_result=True)  # type: ignore[untyped-decorator]
def purge_versions() -> None:
    """Delete ended versions of registrations that nothing can ask for any more."""
    env = read_env()
    _purging.run(env.database_direct_url, Path(env.data))


@app.task(name="eventlog.archive", ignore_result=True)  # type: ignore[untyped-decorator]
def archive() -> None:
    """Archive the sealed segments that are due."""
    env = read_env()
    _heart().beat("archiver")
    _archiving.run(env.database_direct_url, env.archive_url)


@app.task(name=BUILD_INDEXES, ignore_result=True)  # type: ignore[untyped-decorator]
def build_indexes() -> None:
    """Build the match indexes that are asked for or due."""
    env = read_env()
    _heart().beat("indexer")
    _indexing.run(env.database_direct_url, Path(env.data))


@app.task(name=RUN_JOBS, ignore_result=True)  # type: ignore[untyped-decorator]
def run_jobs() -> None:
    """Do the runs of jobs that wait."""
    _running.run(read_env().database_direct_url)


@app.task(  # type: ignore[untyped-decorator]
    name="jobs.ask",
    ignore_result=True,
    autoretry_for=(DatabaseUnavailable,),
    max_retries=limits.JOB_ASK_RETRIES_MAX,
    default_retry_delay=limits.JOB_ASK_PAUSE_S,
)
def ask_job(job: str) -> None:
    """Ask for a run of a job, as the timetable does; again later while the database is away."""
    ask_by_timetable(read_env().database_direct_url, job)


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop_jobs(**_: Any) -> None:
    _archiving.stop()
    _indexing.stop()
    _running.stop()


class WakeSender:
    """Sends the task `delivery.wake` to all workers, on a connection of its own that is quick to
    give up. Raises what Redis' client raises; `Waker` calls it.
    """

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._producer: Any = None

    def __call__(self) -> None:
        try:
            if self._connection is None:
                self._open()
            app.send_task(
                WAKE,
                producer=self._producer,
                exchange=_WAKE_EXCHANGE.name,
                declare=[_WAKE_EXCHANGE],
                routing_key="",
                ignore_result=True,
                expires=1,
                retry=False,
            )
        except BaseException:
            self._forget()
            raise

    def _open(self) -> None:
        timeout_s = limits.CALLBACK_WAKE_TIMEOUT_S
        self._connection = app.connection(
            app.conf.broker_url,
            transport_options={"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s},
        )
        self._producer = app.amqp.Producer(self._connection, auto_declare=False)

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.release()


def open_waker() -> Waker:
    """What a forwarder says `wake()` to when it wrote deliveries."""
    return Waker(WakeSender())


def _terms(env: Env) -> Terms:
    archive = archive_of(env.archive_url)
    addresses = parse_allowed(env.callback_allow)
    return Terms(env.database_url, env.secret_key, addresses, disable, archive)


def _require_threads(pool: type) -> None:
    """Any other pool forks or patches the process in which the drain and long tasks run."""
    if pool is not ThreadPool:
        refuse(
            f"A worker of the hub runs its tasks in threads, not in {pool.__module__}. Write:\n"
            f"  python -m celery -A eventhub.celery worker -P threads -c {WORKER_THREADS}"
        )


def _end_worker() -> None:
    """Without its drain a worker is of no use; whoever looks after it starts another."""
    os.kill(os.getpid(), signal.SIGTERM)
