"""Units of delivery work as a Celery task: how they are started and retried. Composition root. SQL
module.

PostgreSQL notifies a worker's dispatcher of due deliveries. The dispatcher then sends the task to
the worker's own queue (`worker-1@host.dq2`), because this worker has free slots. If Redis is
unavailable or answers errors, the worker runs the task itself: nothing else changes, and nothing is
lost with a message.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from celery import Celery
from celery.exceptions import Ignore, Retry
from celery.utils.nodenames import worker_direct
from kombu import Connection

from delivery.callbacks.dispatcher import DispatcherSettings
from delivery.callbacks.thread import DispatcherThread
from eventhub.base import limits, metrics
from eventhub.base.broker import DELIVER
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.worker.task_base import HubTask, progress

throttled = ThrottledLog(get_logger(__name__))


class OwnQueue:
    """The queue of this worker, with a connection of its own that has short timeouts."""

    def __init__(self, app: Celery, hostname: str) -> None:
        self._app = app
        self._queue = worker_direct(hostname)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._producer: Any = None

    @contextmanager
    def options(self) -> Iterator[dict[str, Any]]:
        """Yield the options to send a task. After an error in the block the next one reconnects."""
        with self._lock:
            try:
                if self._connection is None:
                    self._open()
                yield {"queue": self._queue, "producer": self._producer}
            except Retry:  # the message was sent
                raise
            except Exception:
                self._forget()
                raise

    def _open(self) -> None:
        timeout_s = limits.CALLBACK_UNIT_SEND_S_MAX
        self._connection = self._app.connection(
            self._app.conf.broker_url,
            transport_options={"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s},
        )
        self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.release()


class DeliveryRunner:
    """The units of one worker: its dispatcher, and a thread that starts units."""

    def __init__(self, task: HubTask, settings: DispatcherSettings, hostname: str) -> None:
        self._task = task
        self.queue = OwnQueue(task.app, hostname)
        self.dispatcher = DispatcherThread(settings, self.begin, _end_worker)
        self.consuming = False  # whether the worker takes messages from its broker
        self._requested = threading.Event()
        self._started = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._main, name="units", daemon=True)

    def start(self) -> None:
        progress[DELIVER] = lambda: self.dispatcher.under_way
        self._thread.start()
        self.dispatcher.start()

    def stop(self) -> None:
        self._closed = True
        self._requested.set()
        self.dispatcher.stop()

    def run(self, by: str) -> int:
        """Run a unit in the thread of its task; `by`: `broker` or `worker`."""
        self._started.set()
        metrics.CALLBACK_UNITS.labels(by=by).inc()
        return self.dispatcher.unit()

    def begin(self) -> None:
        """Request a unit, without waiting."""
        self._requested.set()

    def _main(self) -> None:
        while self._requested.wait() and not self._closed:
            self._requested.clear()
            if not self._send():
                self._task.apply()

    def _send(self) -> bool:
        """Send the message of a unit; return whether the unit started in time."""
        if not self.consuming:
            return False
        self._started.clear()
        try:
            with self.queue.options() as options:
                expires_s = limits.CALLBACK_UNIT_START_S
                self._task.apply_async(**options, expires=expires_s, retry=False)
        except Exception as error:  # client libraries raise many kinds without Redis
            throttled.info("unit_without_broker", reason=type(error).__name__)
            return False
        return self._started.wait(limits.CALLBACK_UNIT_START_S)


class DeliverTask(HubTask):
    """The task of a unit. Celery retries a failed one on the worker of its dispatcher; a worker has
    at most one such message under way.
    """

    runner: DeliveryRunner | None = None  # of this process, when it is a worker of deliveries
    _retry_s = float("-inf")  # when the failed unit is retried

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run without a slot: the dispatcher runs one unit at a time, and starts the next one
        before the task of the last one has ended.
        """
        args, kwargs = self.known_arguments(args, kwargs)
        return self.run(*args, **kwargs)

    def retry(self, *args: Any, **options: Any) -> Any:
        """Retry the unit. Raises Retry; Ignore if a retry is pending; the unit's own error if it
        ran without a broker, because its caller retries.
        """
        if self.request.is_eager or self.runner is None:
            raise options["exc"]
        if time.monotonic() < self._retry_s:
            raise Ignore
        self._retry_s = time.monotonic() + options["countdown"]
        metrics.CALLBACK_UNIT_RETRIES.inc()
        with self.runner.queue.options() as own:
            return super().retry(*args, **{**options, **own, "expires": None})


def _end_worker() -> None:
    """End this worker, useless without its dispatcher; its supervisor starts another one."""
    os.kill(os.getpid(), signal.SIGTERM)
