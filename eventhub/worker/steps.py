"""The hub's additions to a Celery worker: its required pool and settings, and its dispatcher.
Composition root. Plain module.
"""

import os
import sys
import threading
from typing import Any

from celery import Celery, bootsteps
from celery.concurrency.thread import TaskPool as ThreadPool

from delivery.callbacks.dispatcher import DispatcherSettings
from eventhub.base import limits
from eventhub.base.broker import DELIVER, QUEUES, SLOTS, threads
from eventhub.base.env import Env, refuse
from eventhub.base.logs import get_logger
from eventhub.eventlog.archive.reader import archive_of
from eventhub.monitoring.heartbeat import MemberThread
from eventhub.preflight import settings_or_exit
from eventhub.worker.delivery_task import DeliverTask, DeliveryRunner
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.secrets import Keyring
from registrations.endpoints.statements import disable

log = get_logger(__name__)
COMMAND = "celery -A eventhub worker"


def attach(app: Celery) -> None:
    """Add the hub's steps to the application's workers."""
    app.steps["worker"].update({RequireStep, DeliveriesStep, MemberStep})
    app.steps["consumer"].add(ConsumingStep)


class RequireStep(bootsteps.Step):  # type: ignore[misc]
    """Refuses options that would break a worker, before it starts."""

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        require_threads(worker.pool_cls, sys.argv)
        queues = _queues(worker)
        _require_usable(queues, worker.concurrency, options)
        worker.env = settings_or_exit()
        if not worker.env.redis_url:
            log.warning(
                "without_redis", runs="deliveries", refused="jobs, indexes, archive, upkeep"
            )
        log.info("worker_started", queues=sorted(queues), threads=worker.concurrency)


class DeliveriesStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Starts the dispatcher of a worker of deliveries before the consumer connects to its broker,
    and stops it with the worker: it runs with and without a broker.
    """

    requires = (RequireStep,)

    def include_if(self, worker: Any) -> bool:
        return QUEUES[DELIVER] in _queues(worker)

    def create(self, worker: Any) -> DeliveryRunner:
        DeliverTask.runner = DeliveryRunner(
            worker.app.tasks[DELIVER], _drain_settings(worker.env), worker.hostname
        )
        return DeliverTask.runner


class MemberStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Makes a worker without a dispatcher a member of the hub while it runs."""

    requires = (RequireStep,)

    def include_if(self, worker: Any) -> bool:
        return QUEUES[DELIVER] not in _queues(worker)

    def create(self, worker: Any) -> MemberThread:
        return MemberThread("worker", worker.env.database_url)


class ConsumingStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Tracks whether the worker takes messages."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    _checked = False  # for another worker of the same name

    def start(self, consumer: Any) -> None:
        if DeliverTask.runner is not None and consumer.controller.env.redis_url:
            DeliverTask.runner.consuming = True
            DeliverTask.runner.begin()  # so that the first message is not sent under load
        if consumer.controller.env.redis_url and not self._checked:
            self._checked = True
            names = (consumer.app, consumer.hostname)
            threading.Thread(target=_check_name, args=names, daemon=True).start()

    def stop(self, consumer: Any) -> None:
        if DeliverTask.runner is not None:
            DeliverTask.runner.consuming = False


def _check_name(app: Celery, node: str) -> None:
    """Warn if another worker has the same name: both would take units from one queue, and Celery's
    tools would show them as one.
    """
    try:
        answers = app.control.broadcast(
            "stats", reply=True, destination=[node], timeout=limits.WORKER_NAME_CHECK_S
        )
    except Exception:  # Redis is unavailable, which the consumer logs
        return
    others = {answer[node].get("pid") for answer in answers} - {os.getpid()}
    if others or len(answers) > 1:
        log.warning(
            "node_name_taken",
            node=node,
            by_process=sorted(others),
            advice="start each worker with its own name: -n NAME@%h",
        )


def require_threads(pool: type, argv: list[str]) -> None:
    """Refuse any other pool: it forks or patches the process that runs the dispatcher and long
    tasks.

    Celery ignores `-P prefork`, its default, and uses the pool of the configuration.
    """
    requested = _option(argv, "-P", "--pool")
    if pool is not ThreadPool or requested == "prefork":
        refuse(
            f"A worker of the hub runs its tasks in threads, not in "
            f"{requested or pool.__module__}. Leave out -P:\n  {COMMAND}"
        )


def _require_usable(queues: set[str], concurrency: int, options: dict[str, Any]) -> None:
    """Refuse unknown queues, too few threads, a changing number of threads, and a second
    timetable.
    """
    if unknown := sorted(queues - SLOTS.keys()):
        refuse(
            f"The hub has no queue {', '.join(unknown)}. Leave out -Q, or name queues of: "
            f"{', '.join(sorted(SLOTS))}"
        )
    least = threads(queues)
    if concurrency < least:
        refuse(
            f"A worker of the queues {', '.join(sorted(queues))} needs {least} threads: one "
            f"for each task that may be long, and one more. Leave out -c, or use:\n"
            f"  {COMMAND} -c {least}"
        )
    if options.get("autoscale"):
        refuse(
            f"A worker of the hub has a fixed number of threads. Leave out --autoscale, or use:\n"
            f"  {COMMAND} -c {least}"
        )
    if options.get("beat"):
        refuse(
            "The timetable is a process of its own, one in a hub; `manage.py up` runs it. Leave out"
            " -B, and if none runs, start:\n  celery -A eventhub beat"
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
    """Return the queues that the worker consumes, without its own."""
    own = f"{worker.hostname}.dq2"
    return {name for name in worker.app.amqp.queues.consume_from if name != own}


def _drain_settings(env: Env) -> DispatcherSettings:
    archive = archive_of(env.archive_url)
    addresses = parse_allowed(env.callback_allow)
    keyring = Keyring((env.secret_key, *env.secret_key_fallbacks))
    urls = env.database_url, env.database_direct_url
    sender = env.allowed_hosts[0].lstrip("*.") or "eventhub"
    return DispatcherSettings(*urls, keyring, addresses, disable, archive, sender)
