"""Slots for hashing passwords: a few at a time per process, given to addresses in fair order, with
a limit on the number of waiters. Plain module.

Concurrency contract: any thread; each request to Django has one of its own.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from eventhub.base import limits
from eventhub.base.errors import TooManyRequests
from eventhub.base.fair_queue import FairQueue, QueueOwner


class HashingSlots:
    """The slots of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = limits.LOGIN_HASHES_AT_ONCE
        self._waiting: FairQueue[threading.Event] = FairQueue()
        self._waiting_of: Counter[str] = Counter()

    @contextmanager
    def slot(self, address: str) -> Iterator[None]:
        """Hold a slot for the block. Raises TooManyRequests."""
        self._enter(address)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, address: str) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            if (
                len(self._waiting) >= limits.LOGIN_HASHES_WAITING_MAX
                or self._waiting_of[address] >= limits.LOGIN_HASHES_WAITING_PER_ADDRESS_MAX
            ):
                raise TooManyRequests("Too many logins at once; wait a second.", retry_after_s=1)
            granted = threading.Event()
            self._waiting.put(QueueOwner(0, crc32(address.encode())), granted)
            self._waiting_of[address] += 1
        granted.wait()
        with self._lock:
            self._waiting_of[address] -= 1
            if not self._waiting_of[address]:
                del self._waiting_of[address]

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.pop().set()
            else:
                self._free += 1
