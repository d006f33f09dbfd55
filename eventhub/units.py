"""Units of delivery work as a Celery task: by whom they are begun, and how they are tried again.
Composition root. SQL module.

PostgreSQL says what is due, and a worker's drain hears of it. It then sends the task to its own
queue (`worker-1@host.dq2`), because it is this worker that has room. With Redis away, or answering
errors, the worker runs the task itself: nothing else changes, and nothing is lost with a message.
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

from delivery.callbacks.drain import DrainSettings
from delivery.callbacks.thread import DrainThread
from eventhub.base import limits, metrics
from eventhub.base.broker import DELIVER
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.tasks import Work, shown

throttled = ThrottledLog(get_logger(__name__))


class OwnQueue:
    """Sends messages to this worker, on a connection of its own that is quick to give up."""

    def __init__(self, app: Celery, hostname: str) -> None:
        self._app = app
        self._queue = worker_direct(hostname)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._producer: Any = None

    @contextmanager
    def options(self) -> Iterator[dict[str, Any]]:
        """How to send a task. After an error within it, another connection is made for the next."""
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


class Units:
    """The units of one worker: its drain, and a thread that has units begun."""

    def __init__(self, task: Work, settings: DrainSettings, hostname: str) -> None:
        self._task = task
        self.queue = OwnQueue(task.app, hostname)
        self.drain = DrainThread(settings, self.begin, _end_worker)
        self.heard = False  # whether the worker takes messages from its broker
        self._asked = threading.Event()
        self._begun = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._main, name="units", daemon=True)

    def start(self) -> None:
        shown[DELIVER] = lambda: self.drain.under_way
        self._thread.start()
        self.drain.start()

    def stop(self) -> None:
        self._closed = True
        self._asked.set()
        self.drain.stop()

    def run(self, by: str) -> int:
        """A unit, in the thread of its task; `by`: `broker` or `worker`."""
        self._begun.set()
        metrics.CALLBACK_UNITS.labels(by=by).inc()
        return self.drain.unit()

    def begin(self) -> None:
        """Have a unit begin; returns at once."""
        self._asked.set()

    def _main(self) -> None:
        while self._asked.wait() and not self._closed:
            self._asked.clear()
            if not self._sent():
                self._task.apply()

    def _sent(self) -> bool:
        """Whether the unit began by a message, in time."""
        if not self.heard:
            return False
        self._begun.clear()
        try:
            with self.queue.options() as options:
                expires_s = limits.CALLBACK_UNIT_START_S
                self._task.apply_async(**options, expires=expires_s, retry=False)
        except Exception as error:  # whatever a client library raises when Redis is away
            throttled.info("unit_without_broker", reason=type(error).__name__)
            return False
        return self._begun.wait(limits.CALLBACK_UNIT_START_S)


class Unit(Work):
    """The task of a unit. Celery tries one that failed again, on the worker whose drain it was; a
    worker has one such message under way.
    """

    units: Units | None = None  # of this process, when it is a worker of deliveries
    _again_s = float("-inf")  # when the unit that failed is tried again

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Without a slot: the drain does one unit at a time, and has the next begun before the task
        of the last one is over.
        """
        args, kwargs = self.known(args, kwargs)
        return self.run(*args, **kwargs)

    def retry(self, *args: Any, **options: Any) -> Any:
        """Raises Retry; Ignore if one is waited for; what the unit raised, if it was run without a
        broker, whose caller looks again.
        """
        if self.request.is_eager or self.units is None:
            raise options["exc"]
        if time.monotonic() < self._again_s:
            raise Ignore
        self._again_s = time.monotonic() + options["countdown"]
        metrics.CALLBACK_UNIT_RETRIES.inc()
        with self.units.queue.options() as own:
            return super().retry(*args, **{**options, **own, "expires": None})


def _end_worker() -> None:
    """Without its drain a worker is of no use; whoever looks after it starts another."""
    os.kill(os.getpid(), signal.SIGTERM)
