"""The log as one object of a process: append, watch, follow from a cursor. Sql module.

`Follower` is the one piece of code in which catch-up turns into tail: everything that reads on uses
it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eventhub import limits, metrics
from eventhub.eventlog.appender import Appender
from eventhub.eventlog.database import reading, reading_pool
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.read import Position, Start, read, resolve
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import Cursor, Stored
from eventhub.eventlog.tail import Tail


class Log:
    """Open it for the life of a process: `async with Log.open(...) as log`."""

    def __init__(self, *, database_url: str, direct_url: str) -> None:
        self.pool = reading_pool(database_url, "read", limits.READERS_PER_PROCESS_MAX)
        # for who-may-what alone: readers that catch up cannot delay it
        self.lookups = reading_pool(database_url, "lookup", limits.LOOKUPS_PER_PROCESS_MAX)
        self.tail = Tail(url=database_url, direct_url=direct_url, pool=self.pool)
        self._appender = Appender(database_url, self.tail.committed)

    @classmethod
    @asynccontextmanager
    async def open(cls, *, database_url: str, direct_url: str = "") -> AsyncIterator["Log"]:
        """The log of a database; the database may be away at first."""
        log = cls(database_url=database_url, direct_url=direct_url or database_url)
        await log.pool.open()
        await log.lookups.open()
        tasks = [asyncio.create_task(log._appender.run()), asyncio.create_task(log.tail.run())]
        try:
            yield log
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await log.pool.close(timeout=2)
            await log.lookups.close(timeout=2)

    async def append(self, drafts: list[Draft]) -> list[Appended]:
        """Store the drafts of one request, all or none: see Appender.append."""
        return await self._appender.append(drafts)

    @asynccontextmanager
    async def follow(self, stream_id: int, start: Start) -> AsyncIterator["Follower"]:
        """A reader of one stream from a start on.

        Raises what `read.resolve` raises, and DatabaseUnavailable.
        """
        async with self.tail.watch(stream_id) as ring:
            async with reading(self.pool) as connection:
                position = await resolve(connection, stream_id, start)
            yield Follower(self, stream_id, ring, position)


class Follower:
    """One reader's place in one stream: catch-up from the log, then the ring, without a seam.

    One user at a time.
    """

    def __init__(self, log: Log, stream_id: int, ring: Ring, position: Position) -> None:
        self.ring = ring
        self.position = position  # where it began
        self.cursor: Cursor = position.cursor  # the last event taken
        self._log = log
        self._stream_id = stream_id

    def ready(self, count: int) -> list[Stored] | None:
        """The next events as far as the ring holds them, without waiting;

        None when they must be read: `catch_up`.
        """
        return self.ring.after(self.cursor.sequence, count)

    async def catch_up(self) -> list[Stored]:
        """The next events from the log; empty when there are none.

        Raises DatabaseUnavailable, Gone, LogHole.
        """
        metrics.RING_READS.labels(tier="database").inc()
        async with reading(self._log.pool) as connection:
            return await read(connection, self._stream_id, self.cursor.sequence)

    def took(self, stored: Stored) -> None:
        self.cursor = Cursor(stored.segment, stored.sequence)

    async def __aiter__(self) -> AsyncIterator[Stored]:
        """Every event from here on, waiting for what is not there yet."""
        waker = asyncio.Event()
        self.ring.wakers.add(waker)
        try:
            while True:
                waker.clear()
                batch = self.ready(limits.FRAMES_PER_TURN_MAX)
                if batch is None:
                    batch = await self.catch_up()
                for stored in batch:
                    self.took(stored)
                    yield stored
                if not batch:
                    await waker.wait()
        finally:
            self.ring.wakers.discard(waker)
