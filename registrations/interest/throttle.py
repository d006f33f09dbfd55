"""The throttle of closures for audiences: one build at a time for each stream, and a pause after an
expensive one, during which other audiences get a closure that matches everything. Otherwise
requests that each name another audience would cause as many builds. Plain module.

Concurrency contract: one event loop.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eventhub.base import limits
from registrations.interest.stored import InterestScope


class AudienceThrottle:
    """The throttle of one process."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}

    def may_start(self, scope: InterestScope, now_s: float) -> bool:
        """Return False while too many builds wait, or in the pause after an expensive one."""
        stream = self._streams.get(scope.stream_id)
        if scope.audience is None or stream is None:
            return True
        return now_s >= stream.rebuild_s and stream.waiting < limits.CLOSURE_WAITING_MAX

    @asynccontextmanager
    async def slot(self, scope: InterestScope) -> AsyncIterator[None]:
        """Wait until no other closure for an audience of the stream is being built."""
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
        """Record that a closure was built, of many registrations or not."""
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
