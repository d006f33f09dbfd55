"""Follows the heads of the watched streams in one process and keeps their rings full. SQL module.

Rings are fed by three sources: rows that this process appended, NOTIFY from other processes, and
a poll of the heads every 250 ms while there are readers, because a NOTIFY may be lost. A ring
accepts only its next sequence.

An append is announced only if another process follows the stream (watchers.py). Of other streams
one is announced from time to time, because the log's maintenance rests while nothing is stored.

Concurrency contract: one event loop; only the task `_keep_full` reads for the rings, on a
connection of its own, so that readers that catch up cannot delay it.
"""

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from psycopg_pool import AsyncConnectionPool

from eventhub.base import limits
from eventhub.base.errors import EventHubError, Gone, LogHole, SegmentMismatch
from eventhub.base.event_loop import pause_together_s, run_forever, wait_until_set
from eventhub.base.logs import get_logger
from eventhub.eventlog.append import SQL, heads_text
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.drafts import NewRow
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.read import heads
from eventhub.eventlog.ring import Ring, Rings
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.eventlog.tail_reads import TailReads
from eventhub.eventlog.watchers import Watchers
from eventhub.postgresql.connections import (
    CONNECTION_ERRORS,
    Connection,
    answered_within,
    connect,
    notifications,
    reading,
)
from eventhub.postgresql.prepared import fetch_prepared

log = get_logger(__name__)

_PAIR = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")
_NOTICE = re.compile(r"([a-z]{1,18}):([0-9]{1,18})")


class _Sent(NamedTuple):
    """The empty result of a NOTIFY."""

    pg_notify: None


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
        self.rings = Rings(shares, self._head, self._created)
        self.on_stored: Callable[[], None] = _do_nothing  # called when any process stored events
        # notified of what another package has announced in any process: by kind, with an id
        self.listeners: dict[str, Callable[[int], None]] = {}
        self._notices: set[tuple[str, int]] = set()  # to be announced
        self._received: dict[int, int] = {}  # stream -> announced head that is not read yet
        self._some_received = asyncio.Event()
        self._watchers = Watchers(pool, self.rings, self._poll_soon)
        self._stored_at_s = -math.inf  # when a stream without watchers was last announced
        self._dirty: dict[int, int] = {}  # stream -> head that other processes do not know yet
        self._some_dirty = asyncio.Event()
        self._poll_at_s = 0.0
        self._polled = asyncio.Event()  # a new one for each poll
        self._used_s = -math.inf  # when a cache last relied on `system`
        self._life = ""

    async def _head(self, stream_id: int) -> Cursor:
        """Return the last event of a stream. Raises DatabaseUnavailable."""
        async with reading(self._pool) as connection:
            return (await heads(connection, [stream_id])).get(stream_id, Cursor("", 0))

    def committed(
        self,
        rows: list[NewRow],
        watchers: Mapping[int, Sequence[int]] = MappingProxyType({}),
        *,
        durable: bool = False,
    ) -> None:
        """Add rows that this process has just committed, in order, to their rings, and announce
        them to the other processes that follow their streams. `watchers`: as in AppendedBatch.
        `durable`: they are on the disk.
        """
        if not rows:
            return
        if durable:
            self.continuity.committed(rows[-1])
        by_stream: dict[int, list[NewRow]] = {}
        for row in rows:
            by_stream.setdefault(row.stream_id, []).append(row)
        for stream_id, new in by_stream.items():
            if self._watchers.others(watchers.get(stream_id, ())) or self._long_silent():
                self._dirty[stream_id] = new[-1].sequence
                self._some_dirty.set()
            ring = self.rings.get(stream_id)
            if ring is not None:
                complete = ring.push([StoredEvent(*row[1:]) for row in new])
                if not complete:  # another process appended in between: read now, not at the poll
                    self._receive(stream_id, new[-1].sequence)

    def _long_silent(self) -> bool:
        """Return whether no stream without watchers was announced for a while; note that one is."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._stored_at_s + limits.STORED_INTERVAL_S:
            return False
        self._stored_at_s = now_s
        return True

    def announce(self, kind: str, id: int) -> None:
        """Notify the listeners of all processes, this one included, after a commit. A notification
        may be lost: they also look by themselves from time to time.
        """
        self._notices.add((kind, id))
        self._some_dirty.set()

    def _created(self) -> None:
        """Follow a further stream."""
        self._watchers.check()
        self._poll_soon()

    def connected(self, life: str) -> None:
        """Note a new connection to the database. If it is in another life, invalidate the rings."""
        known, self._life = self._life, life
        if known in ("", life):
            return
        self.rings.distrust()
        self._poll_soon()

    async def run(self) -> None:
        """Follow until cancelled, also while the database is unreachable."""
        async with asyncio.TaskGroup() as group:
            group.create_task(run_forever("tail listen", self._listen))
            group.create_task(run_forever("tail keep full", self._keep_full))
            group.create_task(run_forever("tail notify", self._notify))
            group.create_task(run_forever("tail watch", self._watchers.run))

    async def _keep_full(self) -> None:
        """Read announced events at once, and poll all heads every 250 ms, less often without
        readers.
        """
        clock = asyncio.get_running_loop().time
        connection: Connection | None = None
        while True:
            self._some_received.clear()
            try:
                if connection is None:
                    connection = await connect(self._url, name="eventhub heads")
                    self.connected((await self.continuity.prove(connection)).life)
                    reads = TailReads(connection)
                await self._read_received(reads)
                if clock() >= self._poll_at_s:
                    self._poll_at_s = clock() + pause_together_s(self._poll_interval_s())
                    await self._poll(reads)
            except (*CONNECTION_ERRORS, EventHubError):
                await _drop(connection)
                connection = None
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            await wait_until_set(self._some_received, self._poll_at_s - clock())

    def keep_confirmed(self, now_s: float) -> None:
        """Keep the head of `system` confirmed for a while from now on, by the loop's clock, because
        a cache relies on it.
        """
        if now_s - self._used_s > limits.HEAD_USED_S:
            self._poll_soon()
        self._used_s = now_s

    async def wait_for_poll(self, timeout_s: float) -> None:
        """Wait for the end of the next poll of the heads."""
        await wait_until_set(self._polled, timeout_s)

    def _poll_soon(self) -> None:
        """Poll now: with a new reader, a lost NOTIFY matters."""
        self._poll_at_s = 0.0
        self._some_received.set()

    def _poll_interval_s(self) -> float:
        """Return the pause between polls. NOTIFY announces everything, so without readers polls
        only keep `system` confirmed, and are rare if no cache relies on it.
        """
        if any(stream_id != SYSTEM_STREAM_ID for stream_id, _ in self.rings.all()):
            return limits.HEAD_POLL_INTERVAL_S
        is_used = asyncio.get_running_loop().time() - self._used_s <= limits.HEAD_USED_S
        return limits.HEAD_IDLE_INTERVAL_S if is_used else limits.HEAD_REST_INTERVAL_S

    async def _read_received(self, reads: TailReads) -> None:
        received, self._received = self._received, {}
        for stream_id, head in received.items():
            await self._fill(reads, stream_id, head)

    async def _poll(self, reads: TailReads) -> None:
        started_s = asyncio.get_running_loop().time()
        lives = {stream_id: ring.life for stream_id, ring in self.rings.all()}
        self._watchers.check()
        if not lives:
            return
        with answered_within(reads.connection, limits.READ_TIMEOUT_S_MAX):
            now = await heads(reads.connection, list(lives))
        for stream_id, head in now.items():
            ring = self.rings.get(stream_id)
            if ring is not None and not ring.trusted and ring.life == lives[stream_id]:
                ring.skip_to(head)
            await self._fill(reads, stream_id, head.sequence)
            if ring is not None and ring.next > head.sequence:
                ring.confirmed_s = started_s
        self._polled.set()
        self._polled = asyncio.Event()

    async def _fill(self, reads: TailReads, stream_id: int, head: int) -> None:
        """Read until the ring has reached a head. The ring ignores rows that it got from another
        source meanwhile.

        Unreadable events are skipped: their readers read the log and get the error.
        """
        while (ring := self.rings.get(stream_id)) is not None and ring.next <= head:
            if not ring.trusted:
                return
            try:
                found = await reads.after(stream_id, ring)
            except (Gone, LogHole, SegmentMismatch, StreamDeleted) as error:
                reason = {"reason": error.code, **error.details}
                log.error("tail_skips", next=ring.next, head=head, **reason)
                found = None
            if found is None:
                ring.distrust()  # the next poll sets it to the head at that time
                self._poll_at_s = 0.0
                return
            if not found.events:
                return
            ring.push(found.events, system=found.system)
            if stream_id == SYSTEM_STREAM_ID:  # management requests append to it too
                self.continuity.committed(found.events[-1])

    async def _listen(self) -> None:
        """Receive NOTIFY from the other processes, on a connection of its own."""
        while True:
            try:
                connection = await connect(self._direct_url, name="eventhub listen")
                try:
                    await connection.execute("LISTEN eventhub_heads")
                    self._watchers.listening(connection.info.backend_pid)
                    async for payload in notifications(connection):
                        self._receive_all(payload)
                finally:
                    self._watchers.listening(None)
                    await connection.close()
            except (*CONNECTION_ERRORS, EventHubError):
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    def _receive_all(self, payload: str) -> None:
        """Process `stream:head` and `kind:id` pairs; ignore anything else, which a newer release
        may add.
        """
        pairs = payload.split()
        if any(pair[0].isdigit() for pair in pairs):
            self.on_stored()
        for pair in pairs:
            if found := _PAIR.fullmatch(pair):
                self._receive(int(found[1]), int(found[2]))
            elif found := _NOTICE.fullmatch(pair):
                self.listeners.get(found[1], _ignore)(int(found[2]))

    def _receive(self, stream_id: int, head: int) -> None:
        ring = self.rings.get(stream_id)
        if ring is not None and ring.next <= head:
            self._received[stream_id] = max(head, self._received.get(stream_id, 0))
            self._some_received.set()

    async def _notify(self) -> None:
        """Announce to the other processes what this one appended, by NOTIFY in a statement of its
        own, at most once in 2 ms.
        """
        connection: Connection | None = None
        while True:
            await self._some_dirty.wait()
            self._some_dirty.clear()
            dirty, self._dirty = self._dirty, {}
            notices, self._notices = self._notices, set()
            try:
                connection = connection or await connect(self._direct_url, name="eventhub notify")
                for payload in _payloads(dirty, notices):
                    with answered_within(connection, limits.READ_TIMEOUT_S_MAX):
                        await fetch_prepared(connection, _Sent, SQL["notify"], [payload.encode()])
            except (*CONNECTION_ERRORS, EventHubError):
                await _drop(connection)
                connection = None  # processes that miss this NOTIFY poll the heads
            await asyncio.sleep(limits.NOTIFY_INTERVAL_S)


def _do_nothing() -> None:
    """Ignore stored events, where no maintenance runs."""


async def _drop(connection: Connection | None) -> None:
    """Close a connection that may be broken."""
    if connection is not None:
        await connection.close()


def _ignore(_id: int) -> None:
    """Ignore a notification of a kind that this process does not know."""


def _payloads(
    new_heads: dict[int, int], notices: Iterable[tuple[str, int]], *, size: int = 200
) -> list[str]:
    """Return NOTIFY payloads with `size` pairs in each, because a payload has less than 8,000
    bytes.
    """
    found = [*heads_text(new_heads).split(), *(f"{kind}:{id}" for kind, id in notices)]
    return [" ".join(found[at : at + size]) for at in range(0, len(found), size)]
