"""Celery's broker: its queues, the queue of each task, and requests from any process that a worker
start a periodic task now instead of at its scheduled time. Plain module.

A request is a hint, sent from a thread of its own: the caller neither waits nor learns of a
failure, because the schedule starts the task as well.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.base.errors import Unavailable
from eventhub.base.logs import ThrottledLog, get_logger

throttled = ThrottledLog(get_logger(__name__))
ARCHIVE = "eventlog.archive"
BUILD_INDEXES = "registrations.build_indexes"
RUN_JOBS = "jobs.run"
DELETE_DUE = "deletion.run"
REPLAY = "delivery.replay"


class RedisOff(Unavailable):
    """A worker does this and is notified through Redis, which this hub lacks; set REDIS_URL."""


class TaskRequests:
    """The requests of one process. `send` gets the name of a task, and may raise."""

    def __init__(self) -> None:
        self.send: Callable[[str], None] | None = None  # set by a composition root
        self._pending: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, task: str) -> None:
        """Request a task. Call it after the commit."""
        with self._lock:
            is_first = not self._pending
            self._pending.add(task)
        if is_first:
            threading.Thread(target=self._send_all, name="task-requests", daemon=True).start()

    def _send_all(self) -> None:
        while task := self._next():
            try:
                if self.send is not None:
                    self.send(task)
            except Exception as error:  # client libraries raise many kinds without Redis
                throttled.info("task_request_failed", task=task, reason=type(error).__name__)
            with self._lock:
                self._pending.discard(task)

    def _next(self) -> str:
        with self._lock:
            return min(self._pending, default="")


request_task = TaskRequests()


def require_workers() -> None:
    """Raise RedisOff if no worker can be notified of a request."""
    if not read_env().redis_url:
        raise RedisOff


DELIVER = "delivery.deliver"
UPKEEP = "upkeep"  # for tasks without a queue of their own

# The concurrency of each queue in one worker. No queue takes a thread of another: however long a
# Spark job, an archive or a build lasts, deliveries have theirs.
SLOTS = {"deliveries": 1, "archive": 1, "indexes": 1, "jobs": 1, "replays": 1, UPKEEP: 2}
QUEUES = {
    DELIVER: "deliveries",
    ARCHIVE: "archive",
    BUILD_INDEXES: "indexes",
    RUN_JOBS: "jobs",
    REPLAY: "replays",
}


def queue_of(task: str) -> str:
    return QUEUES.get(task, UPKEEP)


def threads(queues: "set[str] | dict[str, int]") -> int:
    """Return how many threads a worker of these queues needs: one for each slot, and one for a task
    that finds no slot free.
    """
    return sum(SLOTS.get(queue, 0) for queue in queues) + 1


def broker_url(redis_url: str) -> str:
    """Return REDIS_URL in Celery's form. Without Redis the broker is in the process's memory: no
    task is sent, and a worker only runs deliveries.
    """
    if not redis_url:
        return "memory://"
    path = redis_url.removeprefix("unix://")
    return redis_url if path == redis_url else f"redis+socket://{path}"


def send_task(task: str, redis_url: str) -> None:
    """Send a periodic task to a worker. Raises the errors of Redis' client."""
    _producer(redis_url).send_task(
        task,
        queue=queue_of(task),
        ignore_result=True,
        expires=limits.TASK_REQUEST_EXPIRY_S,
        retry=False,
    )


@cache
def _producer(redis_url: str) -> Any:
    """Return the Celery application that sends. It is loaded by the first task, because most web
    processes never send one, and Celery takes 8 MB and half a second.
    """
    from celery import Celery

    app = Celery("eventhub", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        task_default_queue=UPKEEP,
        broker_transport_options={"socket_connect_timeout": limits.CONNECT_TIMEOUT_S},
    )
    return app
