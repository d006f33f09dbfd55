"""The log as one object of a process: append, watch, follow from a cursor. SQL module.

`Follower` is the only code that switches from catch-up to tail. All continuous readers use it, for
streams in PostgreSQL and in Redis.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from eventhub.base import limits, metrics
from eventhub.base.errors import Gone, SegmentMismatch, UnknownStream
from eventhub.base.fair_queue import HUB_WORK, QueueOwner
from eventhub.eventlog.append import SQL
from eventhub.eventlog.appender import Appender
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.delayed import MixedOutcome, MixedRequest, StoreDelayed, store_nothing
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.errors import StorageFull
from eventhub.eventlog.originals import Copy, Original, find_originals
from eventhub.eventlog.packed import Page, Read, ReadPage, reader_of_pages
from eventhub.eventlog.read import (
    Position,
    ReadLimits,
    Start,
    cursor_before,
    heads,
    mismatch,
    read,
    resolve,
)
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.stored import ArchivedSegment, Cursor, ReadsArchive, StoredEvent, StreamInfo
from eventhub.eventlog.tail import Tail
from eventhub.eventlog.transient import Transient
from eventhub.postgresql.connections import Connection, reading, reading_pool
from eventhub.postgresql.rows import fetch_value

Admit = Callable[[list[Draft]], Awaitable[None]]  # raises StorageFull
_PAGE = ReadLimits()


async def _admit_all(_drafts: list[Draft]) -> None:
    """Admit everything, where no quota and no disk is watched."""


def _note_nothing() -> None:
    """Note nothing, where no maintenance runs."""


class _RecentHead(NamedTuple):
    """The last event of a stream, as it was read, or appended since by this process."""

    cursor: Cursor
    read_s: float  # when the read started, by the loop's clock


_READING = _RecentHead(Cursor("", 0), float("-inf"))


class Log:
    """The log of one process. Open it with `async with Log.open(...) as log`."""

    def __init__(
        self,
        *,
        database_url: str,
        direct_url: str,
        redis_url: str,
        archive: ReadsArchive | None,
        mark_url: str,
    ) -> None:
        self.pool = reading_pool(database_url, "read", limits.READERS_PER_PROCESS_MAX)
        # for what requests wait for (authorization, originals, positions), so that readers that
        # catch up cannot delay it
        self.lookups = reading_pool(database_url, "lookup", limits.LOOKUPS_PER_PROCESS_MAX)
        shares: set[Ring] = set()  # all rings of the process
        self.continuity = Continuity(mark_url)
        self.tail = Tail(
            url=database_url,
            direct_url=direct_url,
            pool=self.pool,
            shares=shares,
            continuity=self.continuity,
        )
        self.transient = Transient(redis_url, shares, self._read_history)
        self.continuity.on_new_life = self.transient.history.forget
        self.admit: Admit = _admit_all  # called before every append
        # called when PostgreSQL refuses an append because its disk is full
        self.on_write_refused: Callable[[], None] = _note_nothing
        self.store_delayed: StoreDelayed = store_nothing
        self._archive = archive
        self._heads: dict[int, asyncio.Future[Cursor]] = {}  # reads in progress, by stream
        self._recent: dict[int, _RecentHead] = {}  # by stream, for refusals
        self._appenders = {
            durability: Appender(database_url, durability, self.tail)
            for durability in ("sync", "async")
        }

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        database_url: str,
        direct_url: str = "",
        redis_url: str = "",
        archive: ReadsArchive | None = None,
        mark_url: str = "",
    ) -> AsyncIterator["Log"]:
        """Open the log of a database, which may be unreachable at first.

        Without Redis there are no transient streams; without an archive its segments are reported
        as gone. `mark_url`: the storage of the mark that detects a restore (high_water_mark.py).
        """
        log = cls(
            database_url=database_url,
            direct_url=direct_url or database_url,
            redis_url=redis_url,
            archive=archive,
            mark_url=mark_url,
        )
        await log.pool.open()
        await log.lookups.open()
        runs = [
            log.tail.run(),
            log.transient.run(),
            log.continuity.run(),
            *(one.run() for one in log._appenders.values()),
        ]
        tasks = [asyncio.create_task(run) for run in runs]
        try:
            yield log
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await log.pool.close(timeout=2)
            await log.lookups.close(timeout=2)
            await log.transient.close()

    async def append(
        self, drafts: list[Draft], stream: StreamInfo | None = None, owner: QueueOwner = HUB_WORK
    ) -> list[Appended]:
        """Store the drafts of one request, all or none. `stream`: theirs; None: a sync one.
        `owner`: their owner, by default the hub itself.

        Raises the errors of Appender.append and Transient.append, and StorageFull.
        """
        durability = "sync" if stream is None else stream.durability
        if stream is not None and durability == "transient":
            return await self.transient.append(stream, drafts)
        await self.admit(drafts)
        try:
            appended = await self._appenders[durability].append(drafts, owner)
        except StorageFull:
            self.on_write_refused()
            raise
        if self._recent:
            self._advance_recent(appended)
        return appended

    async def append_delayed(self, request: MixedRequest) -> MixedOutcome:
        """Store the drafts of one request, all or none, of which some are delayed.

        Raises UnknownStream, ProducerWindow, LimitReached, DatabaseUnavailable, DatabaseBusy,
        OutcomeUnknown, StorageFull.
        """
        await self.admit([*request.now, *(one.draft for one in request.delayed)])
        try:
            outcome = await self.store_delayed(request)
        except StorageFull:
            self.on_write_refused()
            raise
        self._advance_recent(outcome.appended)
        return outcome

    async def _read_history(self) -> str:
        """Return the history of the database, once its continuity is proved: a restore has another
        one. Raises DatabaseUnavailable.
        """
        async with reading(self.lookups) as connection:
            await self.continuity.prove(connection)
            return await fetch_value(connection, SQL["history"]) or ""

    async def originals(self, zone_id: int, copies: Sequence[Copy]) -> list[Original]:
        """Return the stored events that new events are copies of. Raises DatabaseUnavailable."""
        async with reading(self.lookups) as connection:
            return await find_originals(connection, zone_id, copies)

    async def head(self, stream: StreamInfo | int, *, age_s_max: float = 0.0) -> Cursor:
        """Return the last event of a stream. Callers at the same time share one read. With
        `age_s_max` it may be the one that was read that long ago, or that this process has appended
        since: then a flood of refused requests costs no reads.

        Raises UnknownStream, DatabaseUnavailable, DatabaseBusy, TransientUnavailable.
        """
        stream_id = stream if isinstance(stream, int) else stream.id
        recent = self._recent.get(stream_id)
        if recent and recent.read_s > asyncio.get_running_loop().time() - age_s_max:
            return recent.cursor
        found = self._heads.get(stream_id)
        if found is None:
            found = self._heads[stream_id] = asyncio.ensure_future(self._read_head(stream))
            found.add_done_callback(partial(self._end_head, stream_id))
        if not age_s_max:
            return await asyncio.shield(found)
        started_s = asyncio.get_running_loop().time()
        if recent is None or recent.read_s > _READING.read_s:
            self._note_recent(stream_id, _READING)
        try:
            cursor = await asyncio.shield(found)
        except BaseException:
            self._recent.pop(stream_id, None)
            raise
        appended = self._recent.get(stream_id, _READING).cursor  # by this process meanwhile
        cursor = max(cursor, appended, key=lambda each: each.sequence)
        self._note_recent(stream_id, _RecentHead(cursor, started_s))
        return cursor

    async def _read_head(self, stream: StreamInfo | int) -> Cursor:
        if isinstance(stream, StreamInfo) and stream.durability == "transient":
            return (await self.transient.resolve(stream.id, "now")).cursor
        stream_id = stream if isinstance(stream, int) else stream.id
        async with reading(self.lookups, seconds=limits.HEAD_READ_S_MAX) as connection:
            found = await heads(connection, [stream_id])
        if stream_id not in found:
            raise UnknownStream
        return found[stream_id]

    def _note_recent(self, stream_id: int, head: "_RecentHead") -> None:
        if len(self._recent) >= limits.RECENT_HEADS_MAX:
            self._recent.clear()
        self._recent[stream_id] = head

    def _advance_recent(self, appended: Sequence[Appended]) -> None:
        """Note the events of a request that this process appended, so that no refusal names an
        earlier one.
        """
        for each in appended:
            recent = self._recent.get(each.stream_id)
            if recent and not each.duplicate:
                cursor = Cursor(each.segment, each.sequence)
                self._recent[each.stream_id] = recent._replace(cursor=cursor)

    def _end_head(self, stream_id: int, done: "asyncio.Future[Cursor]") -> None:
        del self._heads[stream_id]
        if not done.cancelled():
            done.exception()  # retrieved here, because its callers may be cancelled

    @asynccontextmanager
    async def follow(self, stream: StreamInfo | int, start: Start) -> AsyncIterator["Follower"]:
        """Follow one stream from a start on; a bare id means a stream in the database.

        Raises the errors of `read.resolve`, DatabaseUnavailable, TransientUnavailable.
        """
        stream_id = stream if isinstance(stream, int) else stream.id
        if isinstance(stream, StreamInfo) and stream.durability == "transient":
            async with self.transient.rings.watch(stream_id) as ring:
                position = await self.transient.resolve(stream_id, start)
                yield Follower(ring, position, self.transient.reader(stream_id))
            return
        async with self.tail.rings.watch(stream_id) as ring:
            async with (
                reading(self.pool) as connection,
                self._doubted(connection, stream_id, start),
            ):
                position = await resolve(connection, stream_id, start)
            read_rows = self.reader(stream_id)
            yield Follower(ring, position, read_rows, reader_of_pages(self.pool, read_rows))

    def reader(self, stream_id: int) -> Read:
        """Return a function that reads pages of a stream from the database and the archive."""

        async def read_page(cursor: Cursor, page: ReadLimits) -> list[StoredEvent]:
            metrics.RING_READS.labels(tier="database").inc()
            async with (
                reading(self.pool) as connection,
                self._doubted(connection, stream_id, cursor),
            ):
                found = await read(connection, stream_id, cursor, page)
            if isinstance(found, ArchivedSegment):
                return await self._read_archived(found, cursor, page)
            return found

        return read_page

    async def cursor_before(self, stream_id: int, sequence: int) -> Cursor:
        """Return the cursor before an event of a stream in the database, for `reader`. Raises Gone
        if it is no longer stored, with the cursor before the next one.
        """
        async with reading(self.pool) as connection:
            return await cursor_before(connection, stream_id, sequence)

    @asynccontextmanager
    async def _doubted(
        self, connection: Connection, stream_id: int, start: Start
    ) -> AsyncIterator[None]:
        """Check a refused cursor: it may be ahead of a log that has lost events."""
        try:
            yield
        except SegmentMismatch as error:
            if isinstance(start, Cursor) and await self.continuity.doubt(
                connection, stream_id, start
            ):
                raise await mismatch(connection, stream_id) from error
            raise

    async def _read_archived(
        self, segment: ArchivedSegment, cursor: Cursor, page: ReadLimits
    ) -> list[StoredEvent]:
        if self._archive is None:
            raise Gone("The event is in the archive, and this hub runs without an archive.")
        metrics.RING_READS.labels(tier="archive").inc()
        return await asyncio.to_thread(self._archive.read, segment, cursor.sequence, *page)


class Follower:
    """The position of one reader in one stream: catch-up from the log, then the ring, without a
    gap or a duplicate between. One user at a time.
    """

    __slots__ = ("_life", "_read", "_read_page", "cursor", "position", "ring")

    def __init__(
        self, ring: Ring, position: Position, read: Read, read_page: ReadPage | None = None
    ) -> None:
        self.ring = ring
        self.position = position  # the start
        self.cursor: Cursor = position.cursor  # the last event taken
        self._life = ring.life
        self._read = read
        self._read_page = read_page or read

    @property
    def live(self) -> bool:
        """Whether the ring holds the next event."""
        return self._life == self.ring.life and self.ring.holds(self.cursor.sequence)

    def next_in_ring(self, count: int) -> list[StoredEvent] | None:
        """Return the next events in the ring, without waiting; None if they must be read with
        `catch_up`.
        """
        if self._life != self.ring.life:
            return None
        return self.ring.after(self.cursor.sequence, count)

    async def catch_up(self, page: ReadLimits = _PAGE) -> list[StoredEvent]:
        """Read the next events from the log; empty if there are none.

        Raises DatabaseUnavailable, TransientUnavailable, Gone, SegmentMismatch, LogHole,
        ArchiveDamaged.
        """
        life = self.ring.life
        found = await self._read(self.cursor, page)
        self._life = life  # the log has confirmed the cursor
        return found

    async def next_page(self, page: ReadLimits = _PAGE) -> Page:
        """Do the same, for a reader that takes packed pages."""
        life = self.ring.life
        found = await self._read_page(self.cursor, page)
        self._life = life
        return found

    def advance_to(self, stored: StoredEvent) -> None:
        self.cursor = Cursor(stored.segment, stored.sequence)

    async def __aiter__(self) -> AsyncIterator[StoredEvent]:
        """Yield every event from here on, waiting for new ones."""
        waker = asyncio.Event()
        self.ring.wakers.add(waker)
        try:
            while True:
                waker.clear()
                batch = self.next_in_ring(limits.FRAMES_PER_SLICE_MAX)
                if batch is None:
                    batch = await self.catch_up()
                for stored in batch:
                    self.advance_to(stored)
                    yield stored
                if not batch:
                    await waker.wait()
        finally:
            self.ring.wakers.discard(waker)
