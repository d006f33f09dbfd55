"""Has a worker begin a periodic task now, because somebody asked for what it does. Plain module.

A hint, sent by a thread that comes and goes, so that whoever asks never waits and never hears of a
failure: the timetable starts the task as well.
"""

import threading
from collections.abc import Callable

from eventhub.base.env import read_env
from eventhub.base.errors import Unavailable
from eventhub.base.logs import Seldom, get_logger

seldom = Seldom(get_logger(__name__))
ARCHIVE = "eventlog.archive"
BUILD_INDEXES = "registrations.build_indexes"
RUN_JOBS = "jobs.run"


class RedisOff(Unavailable):
    """A worker does this, and is told through Redis; this hub has none (REDIS_URL is not set)."""

    code = "redis_off"


class Soon:
    """The hints of one process; `send` is given a task's name, and may raise."""

    def __init__(self) -> None:
        self.send: Callable[[str], None] | None = None  # until a composition root says how
        self._asked: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, task: str) -> None:
        """Call it after the commit."""
        with self._lock:
            is_first = not self._asked
            self._asked.add(task)
        if is_first:
            threading.Thread(target=self._send_all, name="soon", daemon=True).start()

    def _send_all(self) -> None:
        while task := self._next():
            try:
                if self.send is not None:
                    self.send(task)
            except Exception as error:  # whatever a client library raises when Redis is away
                seldom.info("task_not_hurried", task=task, reason=type(error).__name__)
            with self._lock:
                self._asked.discard(task)

    def _next(self) -> str:
        with self._lock:
            return min(self._asked, default="")


soon = Soon()


def require_workers() -> None:
    """Raises RedisOff where no worker could be told of what is asked for."""
    if not read_env().redis_url:
        raise RedisOff
