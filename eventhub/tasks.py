"""What all tasks of the hub have in common: each queue has slots of its own in a worker, and
Celery's tools show what a task is at. Composition root. Plain module.
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
shown: dict[str, Callable[[], dict[str, Any]]] = {}  # by task: what it is at


class ShownRequest(Request):  # type: ignore[misc]
    """A task in a worker's hands, as `celery inspect active` shows it: with what it is at."""

    def info(self, safe: bool = False) -> dict[str, Any]:
        show = shown.get(self.name)
        return {**super().info(safe=safe), "work": show() if show and self.time_start else {}}


class Work(Task):  # type: ignore[misc]
    """A task that takes a slot of its queue. One that finds none free is dropped, or comes again if
    it `waits`. Arguments that a newer release has added are left out.
    """

    Request = "eventhub.tasks:ShownRequest"
    ignore_result = True
    typing = False  # a message that comes again keeps the arguments that this release does not know
    waits = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.known(args, kwargs)
        slot = _slots[queue_of(self.name)]
        if slot.acquire(blocking=False):
            try:
                return self.run(*args, **kwargs)
            finally:
                slot.release()
        if self.waits:
            raise self.retry(countdown=limits.QUEUE_BUSY_S)
        return None

    def known(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that the function of this task has parameters for."""
        names = list(inspect.signature(self.run).parameters)
        unknown = sorted(kwargs.keys() - set(names))
        if unknown or len(args) > len(names):
            throttled.warning(
                "task_arguments_left_out",
                task=self.name,
                names=unknown,
                positional=max(len(args) - len(names), 0),
            )
        return args[: len(names)], {name: kwargs[name] for name in kwargs if name in names}
