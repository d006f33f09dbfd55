"""Follows the stream `system` for a cache: events are applied in order, and the cache is valid only
while it is up to date. SQL module.

Concurrency contract: one event loop; `run` is one task, and only it calls `apply`.
"""

import asyncio
from collections.abc import Awaitable, Callable

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import heads
from eventhub.eventlog.stored import StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading

log = get_logger(__name__)
throttled = ThrottledLog(log)

Apply = Callable[[StoredEvent | None], Awaitable[None]]  # None: earlier events are unknown


class SystemFollower:
    """The position of one cache in `system`."""

    def __init__(self, hub_log: Log, name: str, apply: Apply) -> None:
        self._log = hub_log
        self._name = name
        self._apply = apply
        self._follower: Follower | None = None
        self._applied = 0  # the last sequence that was applied

    def fresh(self) -> bool:
        """Return whether the cache is valid: the tail of `system` was confirmed within a second,
        and all of it is applied.
        """
        follower = self._follower
        if follower is None or follower.ring.next != self._applied + 1:
            return False
        now_s = asyncio.get_running_loop().time()
        self._log.tail.keep_confirmed(now_s)
        return now_s - follower.ring.confirmed_s < limits.AUTHORISATION_FRESH_S_MAX

    def has_reached(self, sequence: int) -> bool:
        """Return whether everything up to that sequence of `system` is applied."""
        return self._follower is not None and self._applied >= sequence

    async def head(self) -> int:
        """Return the present last sequence of `system`. Raises DatabaseUnavailable."""
        async with reading(self._log.lookups) as connection:
            return (await heads(connection, [SYSTEM_STREAM_ID]))[SYSTEM_STREAM_ID].sequence

    async def run(self) -> None:
        """Follow until cancelled, also while the database is unreachable."""
        while True:
            try:
                await self._follow()
            except EventHubError as error:
                throttled.warning("system_not_followed", by=self._name, error=error.code)
            finally:
                self._follower = None
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _follow(self) -> None:
        async with self._log.follow(SYSTEM_STREAM_ID, "now") as follower:
            await self._apply(None)  # events before `now` are not followed
            self._applied = follower.position.cursor.sequence
            self._follower = follower
            async for stored in follower:
                await self._apply(stored)
                self._applied = stored.sequence
