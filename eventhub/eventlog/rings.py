"""The rings of one process: made for the first reader of a stream, and let go of a while after the
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
    """Rings by stream. All of `shares`, of whatever kind, share their bytes equally."""

    def __init__(
        self,
        shares: set[Ring],
        head_of: Callable[[int], Awaitable[Cursor]],
        made: Callable[[], None],
    ) -> None:
        self._made = made  # called when there is a new one
        self._rings: dict[int, Ring] = {}
        self._watchers: dict[int, int] = {}
        self._left_at_s: dict[int, float] = {}  # of streams that nobody watches any more
        self._shares = shares
        self._head_of = head_of

    @asynccontextmanager
    async def watch(self, stream_id: int) -> AsyncIterator[Ring]:
        """The stream's ring, for as long as somebody watches and a little longer: a reader that
        polls comes again. Raises what `head_of` raises.
        """
        if stream_id not in self._rings:
            head = await self._head_of(stream_id)
            if stream_id not in self._rings:  # nobody was quicker
                self._rings[stream_id] = Ring(head, bytes_max=limits.RING_BYTES_TOTAL_MAX)
                self._shares.add(self._rings[stream_id])
                self._share()
                self._made()
        self._watchers[stream_id] = self._watchers.get(stream_id, 0) + 1
        self._left_at_s.pop(stream_id, None)
        try:
            yield self._rings[stream_id]
        finally:
            self._watchers[stream_id] -= 1
            if not self._watchers[stream_id]:
                self._left_at_s[stream_id] = asyncio.get_running_loop().time()

    def get(self, stream_id: int) -> Ring | None:
        return self._rings.get(stream_id)

    def all(self) -> list[tuple[int, Ring]]:
        """Those that are kept now; what nobody has watched for long is forgotten here."""
        before_s = asyncio.get_running_loop().time() - limits.RING_IDLE_S
        for stream_id, left_at_s in list(self._left_at_s.items()):
            if left_at_s < before_s:
                del self._left_at_s[stream_id], self._watchers[stream_id]
                self._shares.discard(self._rings.pop(stream_id))
                self._share()
        return list(self._rings.items())

    def distrust(self) -> None:
        """Rely on none of them until it was looked at."""
        for ring in self._rings.values():
            ring.distrust()

    def _share(self) -> None:
        for ring in self._shares:
            ring.bytes_max = limits.RING_BYTES_TOTAL_MAX // len(self._shares)
