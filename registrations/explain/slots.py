"""How much of a web process may be busy with understanding at a time: the rest is for events.
Plain module.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import TooManyRequests


class ExplainSlots:
    """The runs under way in one process, by client. One event loop."""

    def __init__(self) -> None:
        self._clients: Counter[int] = Counter()

    @contextmanager
    def one(self, principal: Principal) -> Iterator[None]:
        """A place until the end of the block. Raises TooManyRequests."""
        client = principal.client_id
        if (
            self._clients.total() >= limits.EXPLAIN_PER_PROCESS_MAX
            or self._clients[client] >= limits.EXPLAIN_PER_CLIENT_MAX
        ):
            message = "So many dry runs and searches at a time are enough; wait for one to end."
            raise TooManyRequests(message, retry_after_s=1)
        self._clients[client] += 1
        try:
            yield
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]


class TimeSlice:
    """Work in pieces: `over` is true when others should have the event loop; `rest` gives it."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._until_s = self._clock() + limits.EXPLAIN_SLICE_S

    @property
    def over(self) -> bool:
        return self._clock() >= self._until_s

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until_s = self._clock() + limits.EXPLAIN_SLICE_S
