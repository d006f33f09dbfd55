"""When closures for audiences are made: of a stream one at a time, and after an expensive one a
pause, in which others are everything. Who names another audience with each request would otherwise
have the hub make as many closures. Plain module.

Concurrency contract: one event loop.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eventhub.base import limits
from registrations.interest.stored import InterestScope


class AudienceThrottle:
    """Those of one process."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}

    def may_start(self, scope: InterestScope, now_s: float) -> bool:
        """False while too many wait for their turn, or after an expensive one."""
        stream = self._streams.get(scope.stream_id)
        if scope.audience is None or stream is None:
            return True
        return now_s >= stream.rebuild_s and stream.waiting < limits.CLOSURE_WAITING_MAX

    @asynccontextmanager
    async def slot(self, scope: InterestScope) -> AsyncIterator[None]:
        """Enter when no other one for an audience of that stream is being made."""
        if scope.audience is None:
            yield
            return
        stream = self._streams.setdefault(scope.stream_id, _Stream())
        stream.waiting += 1
        try:
            async with stream.lock:
                yield
        finally:
            stream.waiting -= 1

    def built(self, scope: InterestScope, *, took_s: float, many: bool, now_s: float) -> None:
        """Say that one was made, of many registrations or not."""
        if scope.audience is None or not (many or took_s >= limits.CLOSURE_EXPENSIVE_S):
            return
        stream = self._streams.setdefault(scope.stream_id, _Stream())
        stream.rebuild_s = now_s + limits.CLOSURE_REBUILD_SHARE * took_s
        for id, one in list(self._streams.items()):
            if not one.waiting and one.rebuild_s <= now_s:
                del self._streams[id]


class _Stream:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0
        self.rebuild_s = float("-inf")
