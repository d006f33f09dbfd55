"""The rings of one process: created for the first reader of a stream, and removed a while after the
last. Plain module.

Concurrency contract: one event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from eventhub.base import limits
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import Cursor


class Rings:
    """Rings by stream. All rings in `shares`, transient ones too, share the memory equally."""

    def __init__(
        self,
        shares: set[Ring],
        head_of: Callable[[int], Awaitable[Cursor]],
        created: Callable[[], None],
    ) -> None:
        self._created = created  # called when there is a new one
        self._rings: dict[int, Ring] = {}
        self._watchers: dict[int, int] = {}
        self._unwatched_at_s: dict[int, float] = {}  # of streams without watchers
        self._shares = shares
        self._head_of = head_of

    @asynccontextmanager
    async def watch(self, stream_id: int) -> AsyncIterator[Ring]:
        """Keep the stream's ring while the block runs and a little longer, for readers that poll.
        Raises the errors of `head_of`.
        """
        if stream_id not in self._rings:
            head = await self._head_of(stream_id)
            if stream_id not in self._rings:  # no other task was quicker
                self._rings[stream_id] = Ring(head, bytes_max=limits.RING_BYTES_TOTAL_MAX)
                self._shares.add(self._rings[stream_id])
                self._share()
                self._created()
        self._watchers[stream_id] = self._watchers.get(stream_id, 0) + 1
        self._unwatched_at_s.pop(stream_id, None)
        try:
            yield self._rings[stream_id]
        finally:
            self._watchers[stream_id] -= 1
            if not self._watchers[stream_id]:
                self._unwatched_at_s[stream_id] = asyncio.get_running_loop().time()

    def get(self, stream_id: int) -> Ring | None:
        return self._rings.get(stream_id)

    def all(self) -> list[tuple[int, Ring]]:
        """Return the present rings, after removing those that were unwatched for long."""
        before_s = asyncio.get_running_loop().time() - limits.RING_IDLE_S
        for stream_id, unwatched_at_s in list(self._unwatched_at_s.items()):
            if unwatched_at_s < before_s:
                del self._unwatched_at_s[stream_id], self._watchers[stream_id]
                self._shares.discard(self._rings.pop(stream_id))
                self._share()
        return list(self._rings.items())

    def distrust(self) -> None:
        """Invalidate all rings until each is checked against its head."""
        for ring in self._rings.values():
            ring.distrust()

    def _share(self) -> None:
        for ring in self._shares:
            ring.bytes_max = limits.RING_BYTES_TOTAL_MAX // len(self._shares)
