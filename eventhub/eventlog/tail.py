"""Follows the heads of the watched streams in one process and keeps their rings full.

Sql module.

Three sources, one rule (a ring takes only its next sequence): rows this process appended, NOTIFY
from others, and a look at the heads every 250 ms, because a NOTIFY may be lost. Concurrency
contract: one event loop; `run` is one task; a ring is filled by one reader at a time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from psycopg_pool import AsyncConnectionPool

from eventhub import limits
from eventhub.errors import EventHubError, Gone, LogHole
from eventhub.eventlog.append import SQL, heads_text
from eventhub.eventlog.database import AWAY, Connection, answered_within, connect, reading
from eventhub.eventlog.drafts import NewRow
from eventhub.eventlog.endless import endless
from eventhub.eventlog.read import heads, read
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import Stored
from eventhub.logs import get_logger

log = get_logger(__name__)


class Tail:
    """The rings of one process."""

    def __init__(self, *, url: str, direct_url: str, pool: AsyncConnectionPool[Connection]) -> None:
        self._url = url
        self._direct_url = direct_url
        self._pool = pool
        self._rings: dict[int, Ring] = {}
        self._watchers: dict[int, int] = {}
        self._filling: dict[int, asyncio.Lock] = {}
        self._dirty: dict[int, int] = {}
        self._some_dirty = asyncio.Event()
        self._look_now = asyncio.Event()

    @asynccontextmanager
    async def watch(self, stream_id: int) -> AsyncIterator[Ring]:
        """The stream's ring, kept full as long as somebody watches. Raises DatabaseUnavailable."""
        if stream_id not in self._rings:
            async with reading(self._pool) as connection:
                now = (await heads(connection, [stream_id])).get(stream_id, 0)
            self._rings.setdefault(stream_id, Ring(now + 1, bytes_max=limits.RING_BYTES_TOTAL_MAX))
            self._share_bytes()
        self._watchers[stream_id] = self._watchers.get(stream_id, 0) + 1
        try:
            yield self._rings[stream_id]
        finally:
            self._watchers[stream_id] -= 1
            if not self._watchers[stream_id]:
                del self._watchers[stream_id], self._rings[stream_id]
                self._filling.pop(stream_id, None)
                self._share_bytes()

    def committed(self, rows: list[NewRow]) -> None:
        """Rows that this process has just committed, in order: into their rings, and on to the
        other processes.
        """
        by_stream: dict[int, list[NewRow]] = {}
        for row in rows:
            by_stream.setdefault(row.stream_id, []).append(row)
        for stream_id, new in by_stream.items():
            self._dirty[stream_id] = new[-1].sequence
            ring = self._rings.get(stream_id)
            if ring is not None:
                complete = ring.push([Stored(*row[1:]) for row in new])
                if not complete:  # another process appended in between: look now, not in a while
                    self._look_now.set()
        self._some_dirty.set()

    async def run(self) -> None:
        """Follow until cancelled, through every absence of the database."""
        async with asyncio.TaskGroup() as group:
            group.create_task(endless("tail listen", self._listen))
            group.create_task(endless("tail poll", self._poll))
            group.create_task(endless("tail tell", self._tell))

    async def _poll(self) -> None:
        """Look at the heads on a connection of its own, so that busy readers cannot delay it."""
        connection: Connection | None = None
        while True:
            try:
                if self._rings:
                    connection = connection or await connect(self._url, name="eventhub heads")
                    await self._look(connection, list(self._rings))
            except (*AWAY, EventHubError):
                if connection is not None:
                    await connection.close()
                connection = None
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look_now.wait(), limits.HEAD_POLL_INTERVAL_S)
            self._look_now.clear()

    async def _look(self, connection: Connection, stream_ids: list[int]) -> None:
        began_s = asyncio.get_running_loop().time()
        with answered_within(connection, limits.READ_TIMEOUT_S_MAX):
            now = await heads(connection, stream_ids)
        for stream_id, head in now.items():
            await self._fill(connection, stream_id, head)
            ring = self._rings.get(stream_id)
            if ring is not None and ring.next > head:
                ring.confirmed_s = began_s

    async def _fill(self, connection: Connection, stream_id: int, head: int) -> None:
        """Read until the ring has reached a head. Rows that came by another way meanwhile are
        dropped by the ring.

        What can no longer be read is left out: who wants it reads the log, and is told why.
        """
        async with self._filling.setdefault(stream_id, asyncio.Lock()):
            while (ring := self._rings.get(stream_id)) is not None and ring.next <= head:
                try:
                    with answered_within(connection, limits.READ_TIMEOUT_S_MAX):
                        rows = await read(connection, stream_id, ring.next - 1)
                except (Gone, LogHole) as error:
                    reason = {"reason": error.code, **error.details}
                    log.error("tail_skips", next=ring.next, head=head, **reason)
                    ring.skip_to(max(head + 1, ring.next))
                    return
                if not rows:
                    return
                ring.push(rows)

    async def _listen(self) -> None:
        """NOTIFY from the other processes, on a connection of its own."""
        while True:
            try:
                connection = await connect(self._direct_url, name="eventhub listen")
                try:
                    await connection.execute("LISTEN eventhub_heads")
                    async for notice in connection.notifies():
                        await self._heard(notice.payload)
                finally:
                    await connection.close()
            except (*AWAY, EventHubError):
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _heard(self, payload: str) -> None:
        for pair in payload.split():
            stream_id, _, head = pair.partition(":")
            ring = self._rings.get(int(stream_id))
            if ring is not None and ring.next <= int(head):
                async with reading(self._pool) as connection:
                    await self._fill(connection, int(stream_id), int(head))

    async def _tell(self) -> None:
        """NOTIFY the others of what this process appended: a statement of its own, at most one in 2
        ms.
        """
        connection: Connection | None = None
        while True:
            await self._some_dirty.wait()
            self._some_dirty.clear()
            told, self._dirty = self._dirty, {}
            try:
                connection = connection or await connect(self._direct_url, name="eventhub notify")
                for payload in _payloads(told):
                    with answered_within(connection, limits.READ_TIMEOUT_S_MAX):
                        await connection.execute(SQL["notify"], (payload,))
            except (*AWAY, EventHubError):
                connection = None  # whoever misses this notice looks at the heads
            await asyncio.sleep(limits.NOTIFY_INTERVAL_S)

    def _share_bytes(self) -> None:
        for ring in self._rings.values():
            ring.bytes_max = limits.RING_BYTES_TOTAL_MAX // len(self._rings)


def _payloads(told: dict[int, int], *, size: int = 200) -> list[str]:
    """NOTIFY payloads are below 8,000 bytes: so many streams in each."""
    pairs: list[tuple[int, Any]] = list(told.items())
    return [heads_text(dict(pairs[at : at + size])) for at in range(0, len(pairs), size)]
