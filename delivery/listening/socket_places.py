"""Counts the sockets of clients over all web processes, within the quotas of clients and zones. SQL
module.

A socket is a websocket, or one request of a listener over HTTP. Each process writes its counts
(delivery/sql/sockets.sql): before it accepts a socket that a quota bounds, in one call of the
database that decides among all processes, else soon after the change. The counts of a process
without a heartbeat do not count, so a killed process frees the places of its sockets.

Concurrency contract: one event loop; `run` is one task. A count is written under its lock, so the
database never has an older one than this process.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from uuid import uuid4

from psycopg_pool import AsyncConnectionPool

from eventhub.access.principal import Principal
from eventhub.access.quotas import SocketsLimited
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import run_forever, wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection, reading, reading_pool
from eventhub.postgresql.rows import fetch_one, fetch_value

SQL = queries.load("delivery/sql/sockets.sql")
throttled = ThrottledLog(get_logger(__name__))


class _ClientKey(NamedTuple):
    zone_id: int
    client_id: int


class _Taken(NamedTuple):
    """The answer to a request for a place; `scope` None: it is taken."""

    scope: str | None
    quota: int | None
    is_new: bool


class _ClientSockets:
    """The sockets of a client in this process. `written`: in the database; None: unknown."""

    __slots__ = ("full", "full_until_s", "lock", "now", "users", "written")

    def __init__(self) -> None:
        self.now = 0
        self.written: int | None = 0
        self.lock = asyncio.Lock()
        self.users = 0  # tasks that have the lock or wait for it
        self.full: _Taken | None = None
        self.full_until_s = 0.0


class SocketPlaces:
    """The sockets of one process."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool
        self._process = uuid4()
        self._counts: dict[_ClientKey, _ClientSockets] = {}
        self._changed = asyncio.Event()
        self._freed = asyncio.Event()
        self._delete_lost_at_s = 0.0

    async def take(self, principal: Principal) -> None:
        """Count one more socket of a client; of an operator none. Call `release` when it is closed.

        Raises SocketsLimited; for a client with a quota also DatabaseUnavailable.
        """
        if principal.is_operator:
            return
        key = _ClientKey(principal.zone_id, principal.client_id)
        count = self._counts.setdefault(key, _ClientSockets())
        if principal.sockets_bounded:
            count.users += 1
            try:
                async with count.lock:
                    await self._request(key, count)
            finally:
                count.users -= 1
                if count.written is None:  # the answer is unknown
                    self._freed.set()
                self._changed.set()
        count.now += 1
        self._changed.set()

    def add(self, principal: Principal) -> None:
        """Count one more socket, for which a place was taken and is released elsewhere."""
        if not principal.is_operator:
            key = _ClientKey(principal.zone_id, principal.client_id)
            self._counts.setdefault(key, _ClientSockets()).now += 1

    def release(self, principal: Principal) -> None:
        """Count one socket less."""
        if principal.is_operator:
            return
        count = self._counts[_ClientKey(principal.zone_id, principal.client_id)]
        count.now -= 1
        count.full_until_s = 0.0
        self._changed.set()
        if principal.sockets_bounded:
            self._freed.set()

    async def run(self) -> None:
        """Write changed counts and the heartbeat, while there are sockets, until cancelled."""
        while True:
            await self._changed.wait()
            try:
                await self._write()
            except DatabaseUnavailable:
                throttled.info("socket_counts_postponed", count=len(self._counts))
            if not self._counts:
                self._changed.clear()
                continue
            await asyncio.sleep(limits.SOCKETS_FREED_S)
            await wait_until_set(self._freed, limits.SOCKETS_HEARTBEAT_S)
            self._freed.clear()

    async def finish(self) -> None:
        """Delete the counts of this process, which ends."""
        with suppress(DatabaseUnavailable):
            async with reading(self._pool) as connection:
                await connection.execute(SQL["delete_own"], {"process": self._process})

    async def _request(self, key: _ClientKey, count: _ClientSockets) -> None:
        clock = asyncio.get_running_loop().time
        if count.full is None or clock() >= count.full_until_s:
            count.full = await self._requested(key, count)
            count.full_until_s = clock() + limits.SOCKETS_FULL_S
        if count.full is not None:
            raise SocketsLimited(scope=count.full.scope or "", quota=count.full.quota or 0)

    async def _requested(self, key: _ClientKey, count: _ClientSockets) -> _Taken | None:
        """Take a place; return the refusal, if there is none."""
        sockets = count.now + 1
        values = {
            "zone": key.zone_id,
            "client": key.client_id,
            "process": self._process,
            "sockets": sockets,
            "lost_s": limits.SOCKETS_LOST_S,
        }
        count.written = None
        async with reading(self._pool) as connection:
            taken = await fetch_one(connection, _Taken, SQL["take"], values)
        if taken is None:
            raise DatabaseUnavailable
        if taken.is_new:
            self._rewrite()
        if taken.scope is None:
            count.written = sockets
            return None
        count.written = sockets - 1
        return taken

    async def _write(self) -> None:
        """Write the heartbeat, and the counts that nobody else is writing."""
        async with reading(self._pool) as connection:
            if await fetch_value(connection, SQL["heartbeat"], {"process": self._process}):
                self._rewrite()
            await self._write_counts(connection)
            now_s = asyncio.get_running_loop().time()
            if now_s >= self._delete_lost_at_s:
                self._delete_lost_at_s = now_s + limits.SOCKETS_DELETE_S
                delete_s = {"delete_s": limits.SOCKETS_DELETE_S}
                await connection.execute(SQL["delete_lost"], delete_s)

    async def _write_counts(self, connection: Connection) -> None:
        found = [
            (key, count, count.now)
            for key, count in self._counts.items()
            if count.written != count.now and not count.users
        ]
        for _, count, _ in found:
            count.users += 1
            await count.lock.acquire()  # at once: it has no user
        try:
            if found:
                await self._write_locked(connection, found)
        finally:
            for _, count, _ in found:
                count.users -= 1
                count.lock.release()
        unused = [key for key, one in self._counts.items() if not (one.now or one.written)]
        for key in unused:
            if not self._counts[key].users:
                del self._counts[key]

    async def _write_locked(
        self, connection: Connection, found: Sequence[tuple[_ClientKey, _ClientSockets, int]]
    ) -> None:
        sockets = [each for _, _, each in found]
        values = {
            "process": self._process,
            "zones": [key.zone_id for key, _, _ in found],
            "clients": [key.client_id for key, _, _ in found],
            "sockets": sockets,
        }
        for _, count, _ in found:
            count.written = None
        await connection.execute(SQL["write"], values)
        for _, count, written in found:
            count.written = written
        if 0 in sockets:
            await connection.execute(SQL["delete_empty"], {"process": self._process})

    def _rewrite(self) -> None:
        """Write all counts again: the database has none of this process."""
        for count in self._counts.values():
            count.written = None
        self._freed.set()


@asynccontextmanager
async def counting_sockets(database_url: str) -> AsyncIterator[SocketPlaces]:
    """Count the sockets of a process inside the block, on connections of its own."""
    async with reading_pool(database_url, "sockets", limits.SOCKET_CONNECTIONS_MAX) as pool:
        places = SocketPlaces(pool)
        counting = asyncio.create_task(run_forever("sockets", places.run))
        try:
            yield places
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
            await places.finish()
