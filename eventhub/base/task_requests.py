"""Requests that a worker start a periodic task now instead of at its scheduled time. Plain module.

A request is a hint, sent from a thread of its own: the caller neither waits nor learns of a
failure, because the schedule starts the task as well.
"""

import threading
from collections.abc import Callable

from eventhub.base.env import read_env
from eventhub.base.errors import Unavailable
from eventhub.base.logs import ThrottledLog, get_logger

throttled = ThrottledLog(get_logger(__name__))
ARCHIVE = "eventlog.archive"
BUILD_INDEXES = "registrations.build_indexes"
RUN_JOBS = "jobs.run"
DELETE_DUE = "deletion.run"


class RedisOff(Unavailable):
    """A worker does this and is notified through Redis, which this hub lacks; set REDIS_URL."""

    code = "redis_off"


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
