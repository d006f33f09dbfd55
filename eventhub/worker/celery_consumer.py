"""Celery's consumer of tasks, made to survive any fault of Redis. Composition root. Plain module.

A Redis that answers errors (its memory is full), or dies in the middle of an answer, counts as
unavailable, like one that cannot be reached: the consumer reconnects, and the worker with its
dispatcher goes on. Celery itself ends the worker for an unknown error.
"""

import time
from typing import Any

from celery.worker import state
from celery.worker.consumer import Consumer

from eventhub.base import limits
from eventhub.base.logs import ThrottledLog, get_logger

throttled = ThrottledLog(get_logger(__name__))
BINDINGS_LOOK_S = 30.0  # between looks at the expiry of a worker's control queues, an hour or more


class SteadyConsumer(Consumer):  # type: ignore[misc]
    """A consumer that treats every error, except a stop of the worker, as a lost connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection_errors = (Exception,)
        self._pause_s = limits.RECONNECT_PAUSE_S
        self._began_s = 0.0

    def connect(self) -> Any:
        connection = super().connect()
        look_rarely(connection.transport, self.hub)
        return connection

    def start(self) -> None:
        self._began_s = time.monotonic()
        super().start()

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        self._wait(exc)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        self._wait(exc)

    def _wait(self, error: Exception) -> None:
        """Wait before the next attempt, twice as long each time unless it worked in between."""
        now_s = time.monotonic()
        if now_s - self._began_s > limits.CONSUMER_STEADY_S:
            self._pause_s = limits.RECONNECT_PAUSE_S
        throttled.warning("tasks_wait_for_redis", reason=type(error).__name__, detail=str(error))
        until_s = now_s + self._pause_s
        while time.monotonic() < until_s and not _stops():
            time.sleep(min(0.2, max(until_s - time.monotonic(), 0)))
        self._pause_s = min(2 * self._pause_s, limits.CONSUMER_PAUSE_S_MAX)
        self._began_s = time.monotonic()


def look_rarely(transport: Any, hub: Any) -> None:
    """Let kombu look every 30 s, and not every second, whether the bindings of queues that expire
    are to be renewed, which it does every 20 minutes, or swept, every minute.
    """
    cycle: Any = getattr(transport, "cycle", None)
    timer = getattr(cycle, "_binding_expiry_tref", None)
    if timer is not None and hub is not None:
        timer.cancel()
        look = cycle.maybe_refresh_binding_expiry
        cycle._binding_expiry_tref = hub.call_repeatedly(BINDINGS_LOOK_S, look)


def _stops() -> bool:
    """Return whether the worker was asked to stop; exit statuses count, also 0."""
    return any(each not in (None, False) for each in (state.should_stop, state.should_terminate))
