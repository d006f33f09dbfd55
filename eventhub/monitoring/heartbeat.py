"""The heartbeat of this process as a member of the hub. SQL module.

It goes with a statement that the process sends anyway, so that it wakes nothing by itself: with the
renewal of leases, the heartbeat of a worker's deliveries, or the watch of a web process. None of
these connections waits for other work, and a heartbeat waits for no lock.
"""

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg

from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import pause_together_s, run_forever
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.version import VERSION
from eventhub.monitoring.shared_settings import digests_of
from eventhub.postgresql import queries
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, connect

SQL = queries.load("eventhub/monitoring/sql/members.sql")
throttled = ThrottledLog(get_logger(__name__))
Beat = Callable[[Connection], Awaitable[None]]


class HubMember:
    """One process. `kind`: `web`, `forwarder` or `worker`."""

    def __init__(self, kind: str) -> None:
        self._started_s = time.monotonic()
        self._beat_s = float("-inf")
        self._joined = False
        self._identity: dict[str, Any] = {
            "id": uuid4(),
            "kind": kind,
            "node": socket.gethostname(),
            "pid": os.getpid(),
            "version": VERSION,
            "settings": json.dumps(digests_of(read_env())),
        }

    async def beat(self, connection: Connection) -> None:
        """Send a heartbeat, unless the last one was a moment ago, on a connection in autocommit
        mode. To be called at least every MEMBER_HEARTBEAT_S. Raises what psycopg raises.
        """
        now_s = time.monotonic()
        if now_s - self._beat_s < limits.MEMBER_HEARTBEAT_S / 2:
            return
        values = {**self._identity, "age_s": now_s - self._started_s}
        await connection.execute(SQL["heartbeat"], values)
        self._beat_s = now_s
        if not self._joined:
            await connection.execute(SQL["notify"])
            self._joined = True

    async def leave(self, url: str) -> None:
        """Record that this process ends, if it has joined and the database is available."""
        if not self._joined:
            return
        with suppress(DatabaseUnavailable, psycopg.Error, *CONNECTION_ERRORS):
            async with (
                asyncio.timeout(limits.MEMBER_LEAVE_S_MAX),
                await connect(url, name="eventhub member") as connection,
            ):
                await connection.execute(SQL["leave"], {"id": self._identity["id"]})
                await connection.execute(SQL["notify"])


@asynccontextmanager
async def membership(kind: str, url: str) -> AsyncIterator[HubMember]:
    """Yield this process as a member, which leaves with the block; `kind` as of HubMember."""
    member = HubMember(kind)
    try:
        yield member
    finally:
        await member.leave(url)


class MemberThread:
    """The membership of a process that has nothing else to send: start it once, stop it once."""

    def __init__(self, kind: str, url: str) -> None:
        self._kind = kind
        self._url = url
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
        async with membership(self._kind, self._url) as member:
            work = partial(self._beat, member)
            beating = asyncio.create_task(run_forever("member heartbeat", work))
            await self._stop.wait()
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self, member: HubMember) -> None:
        """Send heartbeats over one connection until it fails."""
        try:
            async with await connect(self._url, name="eventhub member") as connection:
                while True:
                    await member.beat(connection)
                    await asyncio.sleep(pause_together_s(limits.MEMBER_HEARTBEAT_S))
        except (DatabaseUnavailable, psycopg.Error, *CONNECTION_ERRORS) as error:
            throttled.info("member_heartbeat_postponed", reason=type(error).__name__)
            await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)
