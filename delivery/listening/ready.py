"""What is ready on a connection: each of its listeners and sessions has a waker that marks it, and
wakes the connection. Plain module.

Concurrency contract: one event loop.
"""

from typing import Generic, TypeVar

from eventhub.base.event_loop import Waker

P = TypeVar("P")


class ReadyWaker(Generic[P]):
    """Marks one part of a connection as ready, and wakes the connection."""

    __slots__ = ("_connection", "_part", "_ready")

    def __init__(self, ready: dict[P, None], part: P, connection: Waker) -> None:
        self._ready = ready
        self._part = part
        self._connection = connection

    def set(self) -> None:
        """Have the connection serve the part in its next round."""
        self._ready[self._part] = None
        self._connection.set()


def take_all(ready: dict[P, None]) -> list[P]:
    """Return the parts that are ready, and mark none any more."""
    found = list(ready)
    ready.clear()
    return found
