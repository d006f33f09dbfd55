"""Where Celery's messages go: the queues, which task is in which, and a task that is sent from a
process that is no worker. Plain module.
"""

from functools import cache
from typing import Any

from eventhub.base import limits
from eventhub.base.run_soon import ARCHIVE, BUILD_INDEXES, RUN_JOBS

DELIVER = "delivery.deliver"
UPKEEP = "upkeep"  # of tasks without a queue of their own

# How many tasks of each queue a worker does at a time. A queue takes no thread of another: however
# long a job of Spark, an archive or a build lasts, deliveries have theirs.
SLOTS = {"deliveries": 1, "archive": 1, "indexes": 1, "jobs": 1, UPKEEP: 2}
QUEUES = {DELIVER: "deliveries", ARCHIVE: "archive", BUILD_INDEXES: "indexes", RUN_JOBS: "jobs"}


def queue_of(task: str) -> str:
    return QUEUES.get(task, UPKEEP)


def threads(queues: "set[str] | dict[str, int]") -> int:
    """How many threads a worker of those queues needs: their slots, and one for a task that finds
    none free.
    """
    return sum(SLOTS.get(queue, 0) for queue in queues) + 1


def broker_url(redis_url: str) -> str:
    """Celery's form of REDIS_URL. Without Redis the broker is the process itself: nobody sends, and
    a worker runs deliveries alone.
    """
    if not redis_url:
        return "memory://"
    path = redis_url.removeprefix("unix://")
    return redis_url if path == redis_url else f"redis+socket://{path}"


def send_task(task: str, redis_url: str) -> None:
    """Have some worker begin a periodic task. Raises what Redis' client raises."""
    _producer(redis_url).send_task(
        task,
        queue=queue_of(task),
        ignore_result=True,
        expires=limits.TASK_REQUEST_EXPIRY_S,
        retry=False,
    )


@cache
def _producer(redis_url: str) -> Any:
    """Loaded by the first task that is sent: most web processes never send one, and Celery takes 8
    MB and half a second.
    """
    from celery import Celery

    app = Celery("eventhub", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        task_default_queue=UPKEEP,
        broker_transport_options={"socket_connect_timeout": limits.CONNECT_TIMEOUT_S},
    )
    return app
