"""Notifies workers of new deliveries. SQL module.

A statement of its own after the commit, at most one every CALLBACK_WAKE_INTERVAL_S. What gets lost
with a process, its successor's first notice makes good.
"""

import asyncio

import psycopg
from psycopg_pool import AsyncConnectionPool

from delivery.callbacks.heartbeat import SQL
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, reading


class Notices:
    """The notices of one forwarder."""

    def __init__(self) -> None:
        self._some = asyncio.Event()
        self._some.set()

    def wrote(self) -> None:
        """New deliveries are committed."""
        self._some.set()

    async def run(self, pool: AsyncConnectionPool[Connection]) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                async with reading(pool) as connection:
                    await connection.execute(SQL["notify"])
            except (psycopg.Error, EventHubError, *CONNECTION_ERRORS):
                self._some.set()
                await asyncio.sleep(limits.RECONNECT_PAUSE_S_MAX)
            await asyncio.sleep(limits.CALLBACK_WAKE_INTERVAL_S)
