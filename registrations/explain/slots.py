"""The concurrency limit of dry runs and searches in a web process, and their time slices, so that
events take precedence. Plain module.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import TooManyRequests


class ExplainSlots:
    """The running dry runs and searches of one process, by client. Concurrency contract: one event
    loop.
    """

    def __init__(self) -> None:
        self._clients: Counter[int] = Counter()

    @contextmanager
    def one(self, principal: Principal) -> Iterator[None]:
        """Hold a slot until the end of the block. Raises TooManyRequests."""
        client = principal.client_id
        if (
            self._clients.total() >= limits.EXPLAIN_PER_PROCESS_MAX
            or self._clients[client] >= limits.EXPLAIN_PER_CLIENT_MAX
        ):
            message = "Too many dry runs and searches are running; retry when one has ended."
            raise TooManyRequests(message, retry_after_s=1)
        self._clients[client] += 1
        try:
            yield
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]


class TimeSlice:
    """A time slice of work: when `over` is true, the worker yields the event loop by `rest`."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._until_s = self._clock() + limits.EXPLAIN_SLICE_S

    @property
    def over(self) -> bool:
        return self._clock() >= self._until_s

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until_s = self._clock() + limits.EXPLAIN_SLICE_S
