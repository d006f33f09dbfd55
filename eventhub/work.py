"""What all tasks of the hub have in common: each queue has slots of its own in a worker, and
Celery's tools show what a task is at. Composition root.
"""

from collections.abc import Callable
from threading import BoundedSemaphore
from typing import Any

from celery import Task
from celery.worker.request import Request

from eventhub import limits
from eventhub.broker import SLOTS, queue_of

_slots = {queue: BoundedSemaphore(count) for queue, count in SLOTS.items()}
shown: dict[str, Callable[[], dict[str, Any]]] = {}  # by task: what it is at


class ShownRequest(Request):  # type: ignore[misc]
    """A task in a worker's hands, as `celery inspect active` shows it: with what it is at."""

    def info(self, safe: bool = False) -> dict[str, Any]:
        show = shown.get(self.name)
        return {**super().info(safe=safe), "work": show() if show and self.time_start else {}}


class Work(Task):  # type: ignore[misc]
    """A task that takes a slot of its queue. One that finds none free is dropped, or comes again if
    it `waits`.
    """

    Request = "eventhub.work:ShownRequest"
    ignore_result = True
    waits = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        slot = _slots[queue_of(self.name)]
        if slot.acquire(blocking=False):
            try:
                return self.run(*args, **kwargs)
            finally:
                slot.release()
        if self.waits:
            raise self.retry(countdown=limits.QUEUE_BUSY_S)
        return None
