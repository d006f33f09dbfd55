"""Wakes workers when there are new deliveries. SQL module.

A notification is sent with the statement that writes deliveries, or on its own after their commit,
at most once every CALLBACK_WAKE_INTERVAL_S. If one is lost with a process, the first one of its
successor replaces it.
"""

import asyncio
import math
import time

import psycopg
from psycopg_pool import AsyncConnectionPool

from delivery.callbacks.heartbeat import SQL
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, reading


class WakeUps:
    """The wake-ups of one forwarder."""

    def __init__(self) -> None:
        self._pending = asyncio.Event()
        self._pending.set()
        self._sent_s = -math.inf

    def take(self) -> bool:
        """Return whether the caller is to notify with the deliveries that it writes now."""
        now_s = time.monotonic()
        if now_s - self._sent_s < limits.CALLBACK_WAKE_INTERVAL_S:
            return False
        self._sent_s = now_s
        return True

    def request(self) -> None:
        """Request a wake-up: new deliveries are committed."""
        self._pending.set()

    async def run(self, pool: AsyncConnectionPool[Connection]) -> None:
        """Send requested wake-ups until cancelled."""
        while True:
            await self._pending.wait()
            self._pending.clear()
            self._sent_s = time.monotonic()
            try:
                async with reading(pool) as connection:
                    await connection.execute(SQL["notify"])
            except (psycopg.Error, EventHubError, *CONNECTION_ERRORS):
                self._pending.set()
                await asyncio.sleep(limits.RECONNECT_PAUSE_S_MAX)
            await asyncio.sleep(limits.CALLBACK_WAKE_INTERVAL_S)
