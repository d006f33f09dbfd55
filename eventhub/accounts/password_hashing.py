"""Slots for hashing passwords: few at a time in one process, addresses in turn, and a bounded
number that waits. Plain module.

Concurrency contract: any thread; each request to Django has one of its own.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from eventhub.base import limits
from eventhub.base.errors import TooManyRequests
from eventhub.base.fair_queue import FairQueue, Party


class Hashing:
    """The places of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = limits.LOGIN_HASHES_AT_ONCE
        self._waiting: FairQueue[threading.Event] = FairQueue()
        self._waiting_of: Counter[str] = Counter()

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Hold a place until the block is left. Raises TooManyRequests."""
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
            turn = threading.Event()
            self._waiting.put(Party(0, crc32(address.encode())), turn)
            self._waiting_of[address] += 1
        turn.wait()
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
