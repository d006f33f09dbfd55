"""Follows the stream `system` for a cache: what it says is applied in order, and what is cached
counts only while that is up to date. SQL module.

Concurrency contract: one event loop; `run` is one task, and what it calls is called by it alone.
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

Tell = Callable[[StoredEvent | None], Awaitable[None]]  # None: what happened before is not known


class SystemFollower:
    """One cache's place in `system`."""

    def __init__(self, hub_log: Log, name: str, tell: Tell) -> None:
        self._log = hub_log
        self._name = name
        self._tell = tell
        self._follower: Follower | None = None
        self._told = 0  # everything up to this sequence was told

    def fresh(self) -> bool:
        """True while what is cached counts: the tail of `system` was confirmed within a second, and
        all of it told.
        """
        follower = self._follower
        if follower is None or follower.ring.next != self._told + 1:
            return False
        now_s = asyncio.get_running_loop().time()
        self._log.tail.rely(now_s)
        return now_s - follower.ring.confirmed_s < limits.AUTHORISATION_FRESH_S_MAX

    def has_reached(self, sequence: int) -> bool:
        """True if everything up to that sequence of `system` was told."""
        return self._follower is not None and self._told >= sequence

    async def head(self) -> int:
        """The last sequence of `system` at this moment. Raises DatabaseUnavailable."""
        async with reading(self._log.lookups) as connection:
            return (await heads(connection, [SYSTEM_STREAM_ID]))[SYSTEM_STREAM_ID].sequence

    async def run(self) -> None:
        """Follow until cancelled, through every absence of the database."""
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
            await self._tell(None)  # what happened before `now` is not followed
            self._told = follower.position.cursor.sequence
            self._follower = follower
            async for stored in follower:
                await self._tell(stored)
                self._told = stored.sequence
