"""What a worker of the hub is beside Celery's own: which pool it takes, what it needs, its drain.
Composition root. Plain module.
"""

import os
import sys
import threading
from typing import Any

from celery import Celery, bootsteps
from celery.concurrency.thread import TaskPool as ThreadPool

from delivery.callbacks.drain import DrainSettings
from eventhub.base import limits
from eventhub.base.broker import DELIVER, QUEUES, SLOTS, threads
from eventhub.base.env import Env, refuse
from eventhub.base.logs import get_logger
from eventhub.eventlog.archive.reader import archive_of
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
        _require_usable(queues, worker.concurrency, options)
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
        Unit.units = Units(worker.app.tasks[DELIVER], _drain_settings(worker.env), worker.hostname)
        return Unit.units


class HeardStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Knows whether the worker takes messages."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    _looked = False  # for another worker of the same name

    def start(self, consumer: Any) -> None:
        if Unit.units is not None and consumer.controller.env.redis_url:
            Unit.units.heard = True
            Unit.units.begin()  # so that the first message is not sent under load
        if consumer.controller.env.redis_url and not self._looked:
            self._looked = True
            names = (consumer.app, consumer.hostname)
            threading.Thread(target=_look_for_namesake, args=names, daemon=True).start()

    def stop(self, consumer: Any) -> None:
        if Unit.units is not None:
            Unit.units.heard = False


def _look_for_namesake(app: Celery, node: str) -> None:
    """Warn if another worker has this one's name: they share the queue of either's own units, and
    Celery's tools take them for one."""
    try:
        answers = app.control.broadcast(
            "stats", reply=True, destination=[node], timeout=limits.WORKER_NAME_CHECK_S
        )
    except Exception:  # Redis is away; the consumer says so
        return
    others = {answer[node].get("pid") for answer in answers} - {os.getpid()}
    if others or len(answers) > 1:
        log.warning(
            "node_name_taken",
            node=node,
            by_process=sorted(others),
            advice="give each worker a name of its own: -n NAME@%h",
        )


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


def _require_usable(queues: set[str], concurrency: int, options: dict[str, Any]) -> None:
    """Refuse queues that nobody sends to, too few threads, and what would change them later, or
    run a second timetable."""
    if unknown := sorted(queues - SLOTS.keys()):
        refuse(
            f"The hub has no queue {', '.join(unknown)}. Leave out -Q, or name some of: "
            f"{', '.join(sorted(SLOTS))}"
        )
    least = threads(queues)
    if concurrency < least:
        refuse(
            f"A worker of the queues {', '.join(sorted(queues))} needs {least} threads, one "
            f"for each task that may be long and one more. Leave out -c, or write:\n"
            f"  {COMMAND} -c {least}"
        )
    if options.get("autoscale"):
        refuse(
            f"A worker of the hub has a number of threads that does not change. Leave out "
            f"--autoscale, or write:\n  {COMMAND} -c {least}"
        )
    if options.get("beat"):
        refuse(
            "The timetable is a process of its own, one in a hub; `manage.py up` runs it. Leave out"
            " -B, and where no other one runs, start:\n  celery -A eventhub beat"
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


def _drain_settings(env: Env) -> DrainSettings:
    archive = archive_of(env.archive_url)
    addresses = parse_allowed(env.callback_allow)
    return DrainSettings(
        env.database_url, env.database_direct_url, env.secret_key, addresses, disable, archive
    )
