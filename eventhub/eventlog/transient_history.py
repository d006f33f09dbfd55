"""The history of the database, as a process knows it: the rings of transient streams belong to one.
Plain module.

A process caches the history. It reads it again when the database server was started, and when a
ring is of another history; only then may it replace the ring, so that a process that has not
noticed a restore does not remove what others have written.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from eventhub.eventlog.errors import TransientUnavailable
from eventhub.eventlog.transient_scripts import OTHER_HISTORY


class TransientHistory:
    """The history, cached. `read` reads it, "" if the server was started since it was proved; it
    raises DatabaseUnavailable.
    """

    def __init__(self, read: Callable[[], Awaitable[str]]) -> None:
        self._read = read
        self._known = ""
        self._learning: asyncio.Future[str] | None = None

    async def call(self, script: Callable[[list[Any]], Awaitable[Any]]) -> Any:
        """Return the answer of a script that is called with the history, and whether it may replace
        a ring of another one: it may once the history was read again.

        Raises TransientUnavailable, DatabaseUnavailable, and what the script raises.
        """
        found = await script([self._known or await self._learn(), 0])
        if found != OTHER_HISTORY:
            return found
        if self._learning is not None:  # it began before the refusal
            await asyncio.wait([self._learning])
        return await script([await self._learn(), 1])

    def forget(self) -> None:
        """Read the history again at the next call: the database server was started."""
        self._known = ""

    async def _learn(self) -> str:
        """Read the history; callers at the same time share one read."""
        if self._learning is None:
            self._learning = asyncio.ensure_future(self._read())
            self._learning.add_done_callback(self._end_learning)
        self._known = await asyncio.shield(self._learning)
        if not self._known:
            raise TransientUnavailable("The database was started just now; try again.")
        return self._known

    def _end_learning(self, done: "asyncio.Future[str]") -> None:
        self._learning = None
        if not done.cancelled():
            done.exception()  # retrieved here, because its callers may be cancelled
