"""Celery's broker: its queues, the queue of each task, and sending a task from a process that is no
worker. Plain module.
"""

from functools import cache
from typing import Any

from eventhub.base import limits
from eventhub.base.task_requests import ARCHIVE, BUILD_INDEXES, RUN_JOBS

DELIVER = "delivery.deliver"
UPKEEP = "upkeep"  # for tasks without a queue of their own

# The concurrency of each queue in one worker. No queue takes a thread of another: however long a
# Spark job, an archive or a build lasts, deliveries have theirs.
SLOTS = {"deliveries": 1, "archive": 1, "indexes": 1, "jobs": 1, UPKEEP: 2}
QUEUES = {DELIVER: "deliveries", ARCHIVE: "archive", BUILD_INDEXES: "indexes", RUN_JOBS: "jobs"}


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
