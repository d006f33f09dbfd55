"""The sessions of one socket that are being connected, side by side: the statements of a group cost
little more than those of one. Plain module.

Concurrency contract: one event loop.
"""

import asyncio
from collections.abc import Coroutine

from eventhub.base import limits


class ConnectsUnderWay:
    """The names of the sessions, and the tasks that connect them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, connect: Coroutine[None, None, None]) -> None:
        """Run a connect beside the others; wait for all of them if they are many."""
        task = asyncio.create_task(connect)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if len(self._tasks) >= limits.SESSIONS_PER_SOCKET_MAX:
            await self.done()

    async def done(self) -> None:
        """Wait until all that were started have ended. Raises what one of them raised."""
        if self._tasks:
            await asyncio.gather(*self._tasks)

    async def cancel(self) -> None:
        """End those that were started."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
