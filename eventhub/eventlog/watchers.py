"""Names the streams that a process follows to the processes that append to them. SQL module.

A process writes the number of the backend on which it listens into the heads of the streams that
it has rings of, and then looks at these heads. An append returns the watchers from the row that it
locks anyway, so it costs nothing to know whether a NOTIFY has a receiver. Both take the head's
lock: an event is either committed before the process is named, and found by that look, or
announced.

A process that was killed stays named until the next one begins to listen: that costs NOTIFYs, which
nobody needs, and loses none.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections.abc import Callable, Sequence

from psycopg_pool import AsyncConnectionPool

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.eventlog.append import SQL
from eventhub.eventlog.ring import Rings
from eventhub.postgresql.connections import Connection, reading
from eventhub.postgresql.rows import fetch_values


class Watchers:
    """The streams that this process is named for."""

    def __init__(
        self, pool: AsyncConnectionPool[Connection], rings: Rings, on_named: Callable[[], None]
    ) -> None:
        """Call `on_named` when the process is named for further streams."""
        self._pool = pool
        self._rings = rings
        self._on_named = on_named
        self._backend: int | None = None  # on which this process listens
        self._named: set[int] = set()  # for these streams
        self._some = asyncio.Event()

    def listening(self, backend: int | None) -> None:
        """Note the backend on which the process listens now."""
        self._backend = backend
        self._named = set()
        self._some.set()

    def others(self, watchers: Sequence[int]) -> bool:
        """Return whether other processes are among the watchers of a stream."""
        return any(backend != self._backend for backend in watchers)

    def check(self) -> None:
        """Have the streams named that have a ring, if they are not yet, and no others."""
        if self._backend is not None and self._rings.ids() != self._named:
            self._some.set()

    async def run(self) -> None:
        """Keep the streams named until cancelled, also while the database is unreachable."""
        cleaned: int | None = None  # the backend with which ended watchers were removed
        while True:
            await self._some.wait()
            self._some.clear()
            backend, now = self._backend, set(self._rings.ids())
            if backend is None:
                continue
            try:
                await self._name(backend, now)
                if cleaned != backend:
                    await self._forget_ended()
                    cleaned = backend
            except EventHubError:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                self._some.set()

    async def _name(self, backend: int, now: set[int]) -> None:
        """Have the process named for these streams only. Raises DatabaseUnavailable and
        DatabaseBusy.
        """
        watched, left = now - self._named, self._named - now
        if not watched and not left:
            return
        values = {"watched": [*watched], "left": [*left], "backend": backend}
        async with reading(self._pool) as connection:
            await connection.execute(SQL["watch"], values)
        if backend == self._backend:
            self._named = now
        if watched:
            self._on_named()

    async def _forget_ended(self) -> None:
        """Remove the watchers that have ended. Raises DatabaseUnavailable, DatabaseBusy."""
        async with reading(self._pool) as connection:
            ended = await fetch_values(connection, SQL["ended_watchers"])
            if ended:
                await connection.execute(SQL["forget_watchers"], {"ended": ended})
