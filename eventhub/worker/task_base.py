"""The base class of the hub's Celery tasks: each queue has slots of its own in a worker, and
Celery's tools show the progress of a task. Composition root. Plain module.
"""

import inspect
from collections.abc import Callable
from threading import BoundedSemaphore
from typing import Any

from celery import Task
from celery.worker.request import Request

from eventhub.base import limits
from eventhub.base.broker import SLOTS, queue_of
from eventhub.base.logs import ThrottledLog, get_logger

throttled = ThrottledLog(get_logger(__name__))
_slots = {queue: BoundedSemaphore(count) for queue, count in SLOTS.items()}
progress: dict[str, Callable[[], dict[str, Any]]] = {}  # by task


class HubRequest(Request):  # type: ignore[misc]
    """A running task in `celery inspect active`, with its progress."""

    def info(self, safe: bool = False) -> dict[str, Any]:
        read = progress.get(self.name)
        return {**super().info(safe=safe), "work": read() if read and self.time_start else {}}


class HubTask(Task):  # type: ignore[misc]
    """A task that takes a slot of its queue. One that finds no slot free is dropped, or retried if
    it `waits`. Arguments that a newer release has added are ignored.
    """

    Request = "eventhub.worker.task_base:HubRequest"
    ignore_result = True
    typing = False  # a retried message retains arguments that this release does not know
    waits = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.known_arguments(args, kwargs)
        slot = _slots[queue_of(self.name)]
        if slot.acquire(blocking=False):
            try:
                return self.run(*args, **kwargs)
            finally:
                slot.release()
        if self.waits:
            raise self.retry(countdown=limits.QUEUE_BUSY_S)
        return None

    def known_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments for which the task's function has parameters."""
        names = list(inspect.signature(self.run).parameters)
        unknown = sorted(kwargs.keys() - set(names))
        if unknown or len(args) > len(names):
            throttled.warning(
                "task_arguments_ignored",
                task=self.name,
                names=unknown,
                positional=max(len(args) - len(names), 0),
            )
        return args[: len(names)], {name: kwargs[name] for name in kwargs if name in names}
