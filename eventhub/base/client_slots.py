"""The number of expensive requests that one process serves at a time, for all clients and for each.
Plain module.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from eventhub.base.errors import TooManyRequests


class ClientSlots:
    """The requests of one kind that run in this process, by client. Nothing waits for a slot.
    Concurrency contract: any thread.
    """

    def __init__(self, all_max: int, per_client_max: int, *, of: str) -> None:
        """Set the bounds; `of` names the requests in the error, in the plural."""
        self._all_max = all_max
        self._per_client_max = per_client_max
        self._of = of
        self._clients: Counter[int] = Counter()
        self._lock = Lock()

    @contextmanager
    def one(self, client_id: int) -> Iterator[None]:
        """Hold a slot until the end of the block. Raises TooManyRequests."""
        with self._lock:
            if (
                self._clients.total() >= self._all_max
                or self._clients[client_id] >= self._per_client_max
            ):
                message = f"Too many {self._of} are running; retry when one has ended."
                raise TooManyRequests(message, retry_after_s=1)
            self._clients[client_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._clients[client_id] -= 1
                self._clients += Counter()  # forgets clients without requests
