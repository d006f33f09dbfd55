"""Follows the heads of the watched streams in one process and keeps their rings full. SQL module.

Three sources, one rule (a ring takes only its next sequence): rows this process appended, NOTIFY
from others, and a look at the heads every 250 ms while somebody reads, because a NOTIFY may be
lost. Concurrency
contract: one event loop; only the task `_keep_full` reads for the rings, on a connection of its
own, so that readers that catch up cannot delay it.
"""

import asyncio
import math
import re
from collections.abc import Callable
from typing import Any

from psycopg_pool import AsyncConnectionPool

from eventhub.base import limits
from eventhub.base.background import run_forever
from eventhub.base.errors import EventHubError, Gone, LogHole, SegmentMismatch
from eventhub.base.logs import get_logger
from eventhub.base.waiting import set_within
from eventhub.eventlog.append import SQL, heads_text
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.drafts import NewRow
from eventhub.eventlog.read import heads, read
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.rings import Rings
from eventhub.eventlog.stored import ArchivedSegment, Cursor, StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import (
    CONNECTION_ERRORS,
    Connection,
    answered_within,
    connect,
    notifications,
    reading,
)

log = get_logger(__name__)

_PAIR = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")


class Tail:
    """The rings of one process."""

    def __init__(
        self,
        *,
        url: str,
        direct_url: str,
        pool: AsyncConnectionPool[Connection],
        shares: set[Ring],
        continuity: Continuity,
    ) -> None:
        self.continuity = continuity
        self._url = url
        self._direct_url = direct_url
        self._pool = pool
        self.rings = Rings(shares, self._head, self._look_soon)
        self.stir: Callable[[], None] = _nothing  # called when any process stored something
        self._heard: dict[int, int] = {}  # stream -> head that somebody spoke of
        self._some_heard = asyncio.Event()
        self._dirty: dict[int, int] = {}
        self._some_dirty = asyncio.Event()
        self._look_at_s = 0.0
        self._looked = asyncio.Event()  # a new one for each look
        self._relied_s = -math.inf  # when somebody last went by what `system` says
        self._life = ""

    async def _head(self, stream_id: int) -> Cursor:
        """Raises DatabaseUnavailable."""
        async with reading(self._pool) as connection:
            return (await heads(connection, [stream_id])).get(stream_id, Cursor("", 0))

    def committed(self, rows: list[NewRow], *, durable: bool = False) -> None:
        """Rows that this process has just committed, in order: into their rings, and on to the
        other processes. `durable`: they are on the disk.
        """
        if durable and rows:
            self.continuity.committed(rows[-1])
        by_stream: dict[int, list[NewRow]] = {}
        for row in rows:
            by_stream.setdefault(row.stream_id, []).append(row)
        for stream_id, new in by_stream.items():
            self._dirty[stream_id] = new[-1].sequence
            ring = self.rings.get(stream_id)
            if ring is not None:
                complete = ring.push([StoredEvent(*row[1:]) for row in new])
                if not complete:  # another process appended in between: read now, not in a while
                    self._hear(stream_id, new[-1].sequence)
        self._some_dirty.set()

    def met(self, life: str) -> None:
        """There is a new connection to the store. If it is in another life, look at it before
        anything is relied on.
        """
        known, self._life = self._life, life
        if known in ("", life):
            return
        self.rings.distrust()
        self._look_at_s = 0.0
        self._some_heard.set()

    async def run(self) -> None:
        """Follow until cancelled, through every absence of the database."""
        async with asyncio.TaskGroup() as group:
            group.create_task(run_forever("tail listen", self._listen))
            group.create_task(run_forever("tail keep full", self._keep_full))
            group.create_task(run_forever("tail tell", self._tell))

    async def _keep_full(self) -> None:
        """Read what was heard of at once, and look at all heads every 250 ms, or less often while
        nobody waits for anything.
        """
        clock = asyncio.get_running_loop().time
        connection: Connection | None = None
        while True:
            self._some_heard.clear()
            try:
                if connection is None:
                    connection = await connect(self._url, name="eventhub heads")
                    self.met((await self.continuity.prove(connection)).life)
                await self._read_heard(connection)
                if clock() >= self._look_at_s:
                    self._look_at_s = clock() + self._look_interval_s()
                    await self._look(connection)
            except (*CONNECTION_ERRORS, EventHubError):
                await _drop(connection)
                connection = None
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            await set_within(self._some_heard, self._look_at_s - clock())

    def rely(self, now_s: float) -> None:
        """Somebody goes by what `system` says: from now on, by the loop's clock, it is kept
        confirmed for a while.
        """
        if now_s - self._relied_s > limits.HEAD_USED_S:
            self._look_soon()
        self._relied_s = now_s

    async def looked(self, seconds: float) -> None:
        """Wait for the next look at the heads to end, so long at most."""
        await set_within(self._looked, seconds)

    def _look_soon(self) -> None:
        """A reader came: from now on a lost NOTIFY matters."""
        self._look_at_s = 0.0
        self._some_heard.set()

    def _look_interval_s(self) -> float:
        """NOTIFY brings everything, so where nobody waits looks only keep `system` confirmed, and
        where nobody goes by that, they are seldom.
        """
        if any(stream_id != SYSTEM_STREAM_ID for stream_id, _ in self.rings.all()):
            return limits.HEAD_POLL_INTERVAL_S
        relied_s = asyncio.get_running_loop().time() - self._relied_s
        is_relied = relied_s <= limits.HEAD_USED_S
        return limits.HEAD_IDLE_INTERVAL_S if is_relied else limits.HEAD_REST_INTERVAL_S

    async def _read_heard(self, connection: Connection) -> None:
        heard, self._heard = self._heard, {}
        for stream_id, head in heard.items():
            await self._fill(connection, stream_id, head)

    async def _look(self, connection: Connection) -> None:
        began_s = asyncio.get_running_loop().time()
        lives = {stream_id: ring.life for stream_id, ring in self.rings.all()}
        if not lives:
            return
        with answered_within(connection, limits.READ_TIMEOUT_S_MAX):
            now = await heads(connection, list(lives))
        for stream_id, head in now.items():
            ring = self.rings.get(stream_id)
            if ring is not None and not ring.trusted and ring.life == lives[stream_id]:
                ring.skip_to(head)
            await self._fill(connection, stream_id, head.sequence)
            if ring is not None and ring.next > head.sequence:
                ring.confirmed_s = began_s
        self._looked.set()
        self._looked = asyncio.Event()

    async def _fill(self, connection: Connection, stream_id: int, head: int) -> None:
        """Read until the ring has reached a head. Rows that came by another way meanwhile are
        dropped by the ring.

        What can no longer be read is left out: who wants it reads the log, and is told why.
        """
        while (ring := self.rings.get(stream_id)) is not None and ring.next <= head:
            if not ring.trusted:
                return
            try:
                with answered_within(connection, limits.READ_TIMEOUT_S_MAX):
                    rows = await read(connection, stream_id, ring.head)
            except (Gone, LogHole, SegmentMismatch) as error:
                reason = {"reason": error.code, **error.details}
                log.error("tail_skips", next=ring.next, head=head, **reason)
                rows = None
            if rows is None or isinstance(rows, ArchivedSegment):
                ring.distrust()  # the next look sets it on the head as it is then
                self._look_at_s = 0.0
                return
            if not rows:
                return
            ring.push(rows)
            if stream_id == SYSTEM_STREAM_ID:  # which management changes, too
                self.continuity.committed(rows[-1])

    async def _listen(self) -> None:
        """NOTIFY from the other processes, on a connection of its own."""
        while True:
            try:
                connection = await connect(self._direct_url, name="eventhub listen")
                try:
                    await connection.execute("LISTEN eventhub_heads")
                    async for payload in notifications(connection):
                        self._hear_all(payload)
                finally:
                    await connection.close()
            except (*CONNECTION_ERRORS, EventHubError):
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    def _hear_all(self, payload: str) -> None:
        """`stream:head` pairs; what a newer release says beside them is for its own."""
        self.stir()
        for pair in payload.split():
            if found := _PAIR.fullmatch(pair):
                self._hear(int(found[1]), int(found[2]))

    def _hear(self, stream_id: int, head: int) -> None:
        ring = self.rings.get(stream_id)
        if ring is not None and ring.next <= head:
            self._heard[stream_id] = max(head, self._heard.get(stream_id, 0))
            self._some_heard.set()

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
            except (*CONNECTION_ERRORS, EventHubError):
                await _drop(connection)
                connection = None  # whoever misses this notice looks at the heads
            await asyncio.sleep(limits.NOTIFY_INTERVAL_S)


def _nothing() -> None:
    """Where nobody asks."""


async def _drop(connection: Connection | None) -> None:
    """Close a connection that broke, or may have."""
    if connection is not None:
        await connection.close()


def _payloads(told: dict[int, int], *, size: int = 200) -> list[str]:
    """NOTIFY payloads are below 8,000 bytes: so many streams in each."""
    pairs: list[tuple[int, Any]] = list(told.items())
    return [heads_text(dict(pairs[at : at + size])) for at in range(0, len(pairs), size)]
