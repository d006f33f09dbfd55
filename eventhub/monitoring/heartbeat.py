"""The heartbeat of this process as a member of the hub. SQL module.

It has a connection and, in a worker, a thread of its own, so that no other work delays it.
"""

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

from psycopg_pool import AsyncConnectionPool

from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import pause_together_s, run_forever
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.version import VERSION
from eventhub.monitoring.shared_settings import digests_of
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection, reading, reading_pool

SQL = queries.load("eventhub/monitoring/sql/members.sql")
throttled = ThrottledLog(get_logger(__name__))


class MemberHeartbeat:
    """The heartbeat of one process. `kind`: `web`, `forwarder` or `worker`."""

    def __init__(self, kind: str, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool
        self._started_s = time.monotonic()
        self._joined = False
        self._identity: dict[str, Any] = {
            "id": uuid4(),
            "kind": kind,
            "node": socket.gethostname(),
            "pid": os.getpid(),
            "version": VERSION,
            "settings": json.dumps(digests_of(read_env())),
        }

    async def run(self) -> None:
        """Send heartbeats until cancelled, also across outages of the database."""
        while True:
            try:
                await self._beat()
            except DatabaseUnavailable:
                throttled.info("member_heartbeat_postponed", kind=self._identity["kind"])
            await asyncio.sleep(pause_together_s(limits.MEMBER_HEARTBEAT_S))

    async def leave(self) -> None:
        """Record that this process ends, if the database is available."""
        with suppress(DatabaseUnavailable, TimeoutError):
            async with (
                asyncio.timeout(limits.MEMBER_LEAVE_S_MAX),
                reading(self._pool) as connection,
            ):
                await connection.execute(SQL["leave"], {"id": self._identity["id"]})
                await connection.execute(SQL["notify"])

    async def _beat(self) -> None:
        values = {**self._identity, "age_s": time.monotonic() - self._started_s}
        async with reading(self._pool) as connection:
            await connection.execute(SQL["heartbeat"], values)
            if not self._joined:
                await connection.execute(SQL["notify"])
                self._joined = True


@asynccontextmanager
async def membership(kind: str, database_url: str) -> AsyncIterator[None]:
    """Keep this process a member of the hub inside the block; `kind` as of MemberHeartbeat."""
    async with reading_pool(database_url, "member", 1) as pool:
        heartbeat = MemberHeartbeat(kind, pool)
        beating = asyncio.create_task(run_forever("member heartbeat", heartbeat.run))
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            await heartbeat.leave()


class MemberThread:
    """The membership of a process without an event loop of its own: start it once, stop it once."""

    def __init__(self, kind: str, database_url: str) -> None:
        self._member = (kind, database_url)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="member", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leave, within a bounded time."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(2 * limits.MEMBER_LEAVE_S_MAX)

    def _main(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with membership(*self._member):
            await self._stop.wait()
