"""What a worker of the hub is beside Celery's own: which pool it takes, what it needs, its drain.
Composition root.
"""

import sys
from typing import Any

from celery import Celery, bootsteps
from celery.concurrency.thread import TaskPool as ThreadPool

from delivery.callbacks.drain import Terms
from eventhub.broker import DELIVER, QUEUES, threads
from eventhub.env import Env, refuse
from eventhub.eventlog.archive.reader import archive_of
from eventhub.logs import get_logger
from eventhub.preflight import require_flight
from eventhub.units import Unit, Units
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.rows import disable

log = get_logger(__name__)
COMMAND = "celery -A eventhub worker"


def attach(app: Celery) -> None:
    """Give the application's workers their steps."""
    app.steps["worker"].update({RequireStep, DeliveriesStep})
    app.steps["consumer"].add(HeardStep)


class RequireStep(bootsteps.Step):  # type: ignore[misc]
    """Refuses what would break a worker, before anything of it starts."""

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        require_threads(worker.pool_cls, sys.argv)
        queues = _queues(worker)
        least = threads(queues)
        if worker.concurrency < least:
            refuse(
                f"A worker of the queues {', '.join(sorted(queues))} needs {least} threads, one "
                f"for each task that may be long and one more. Leave out -c, or write:\n"
                f"  {COMMAND} -c {least}"
            )
        worker.env = require_flight()
        if not worker.env.redis_url:
            log.warning(
                "without_redis", runs="deliveries", refused="jobs, indexes, archive, upkeep"
            )
        log.info("worker_starts", queues=sorted(queues), threads=worker.concurrency)


class DeliveriesStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Starts the drain of a worker of deliveries before the consumer looks for its broker, and
    stops it with the worker: it runs whether or not there is a broker.
    """

    requires = (RequireStep,)

    def include_if(self, worker: Any) -> bool:
        return QUEUES[DELIVER] in _queues(worker)

    def create(self, worker: Any) -> Units:
        Unit.units = Units(worker.app.tasks[DELIVER], _terms(worker.env), worker.hostname)
        return Unit.units


class HeardStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Knows whether the worker takes messages."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        if Unit.units is not None and consumer.controller.env.redis_url:
            Unit.units.heard = True
            Unit.units.begin()  # so that the first message is not sent under load

    def stop(self, consumer: Any) -> None:
        if Unit.units is not None:
            Unit.units.heard = False


def require_threads(pool: type, argv: list[str]) -> None:
    """Refuse any other pool: it forks or patches the process in which drain and long tasks run.

    Celery takes `-P prefork` for nobody's wish, and then the pool of the configuration.
    """
    asked = _option(argv, "-P", "--pool")
    if pool is not ThreadPool or asked == "prefork":
        refuse(
            f"A worker of the hub runs its tasks in threads, not in {asked or pool.__module__}. "
            f"Leave out -P:\n  {COMMAND}"
        )


def _option(argv: list[str], short: str, long: str) -> str:
    for at, word in enumerate(argv):
        if word in (short, long):
            return argv[at + 1] if at + 1 < len(argv) else ""
        for begin in (f"{long}=", short):
            if word.startswith(begin) and not word.startswith("--pool-"):
                return word.removeprefix(begin)
    return ""


def _queues(worker: Any) -> set[str]:
    """The queues that the worker was told to take from, without its own."""
    own = f"{worker.hostname}.dq2"
    return {name for name in worker.app.amqp.queues.consume_from if name != own}


def _terms(env: Env) -> Terms:
    archive = archive_of(env.archive_url)
    addresses = parse_allowed(env.callback_allow)
    return Terms(
        env.database_url, env.database_direct_url, env.secret_key, addresses, disable, archive
    )
