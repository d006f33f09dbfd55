"""Where Celery's messages go, and a task that is sent from a process that is no worker. Plain."""

from functools import cache
from typing import Any

from eventhub import limits

QUEUE = "eventhub"


def broker_url(redis_url: str) -> str:
    """Celery's form of REDIS_URL. Without Redis the broker is the process itself: nobody sends, and
    the drain looks every second.
    """
    if not redis_url:
        return "memory://"
    path = redis_url.removeprefix("unix://")
    return redis_url if path == redis_url else f"redis+socket://{path}"


def send_task(task: str, redis_url: str) -> None:
    """Have some worker begin a periodic task. Raises what Redis' client raises."""
    _producer(redis_url).send_task(task, ignore_result=True, expires=limits.SOON_S_MAX, retry=False)


@cache
def _producer(redis_url: str) -> Any:
    """Loaded by the first task that is sent: most web processes never send one, and Celery takes 8
    MB and half a second.
    """
    from celery import Celery

    app = Celery("eventhub", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        broker_transport_options={"socket_connect_timeout": limits.CONNECT_TIMEOUT_S},
    )
    return app
