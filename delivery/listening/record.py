"""The record of what this process tells its clients: when each listen began, from where, how far
it was told, and how it ended (FOX-23). SQL module.

A listen begins when its row is committed, with the rows of all that begin at the same time in one
statement. How far it was told is written now and then: if the process is killed, its rows stay
open, and the cursor that the client comes back with says the rest.

Concurrency contract: one event loop; `run` is one task, which alone writes until it has ended.
"""

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from psycopg_pool import AsyncConnectionPool

from delivery.listening import listener_rows
from delivery.listening.listener_rows import ListenerKey, ListenerProgress, NewListener
from eventhub.base import limits
from eventhub.base.background import run_forever
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import Connection, reading, reading_pool

log = get_logger(__name__)

_PROLONGED = ("poll", "lines")  # doors whose requests follow one another
_Whose = tuple[int, int, str, str]  # client, stream, door and wish of such requests
_TICKS_PER_HOUR = int(3_600 / limits.LISTENERS_WRITE_INTERVAL_S)
_TICKS_PER_PROGRESS = int(limits.LISTENERS_PROGRESS_INTERVAL_S / limits.LISTENERS_WRITE_INTERVAL_S)


class Entry:
    """A row of the record, as its process knows it. Whoever tells calls `moved`, then `end`."""

    __slots__ = (
        "_record",
        "begun",
        "cursor",
        "ended_s",
        "place",
        "since",
        "told",
        "why",
        "written",
    )

    def __init__(self, record: "Record", begun: NewListener) -> None:
        self._record = record
        self.begun = begun
        self.cursor = begun.after
        self.told = 0
        self.since = record.ticks
        self.why: str | None = None
        self.ended_s = 0.0  # of the loop's clock
        self.place: ListenerKey | None = None  # once it is written
        self.written: asyncio.Future[None] | None = None  # if somebody waits for that

    def moved(self, cursor: Cursor, told: int) -> "Entry":
        """So many more events were told, and all were looked at up to a cursor. The entry that goes
        on: a new one once in a day.
        """
        self.cursor = cursor
        self.told += told
        self._record.changed.add(self)
        if (
            self._record.ticks - self.since
            < limits.LISTENER_ROW_S_MAX / limits.LISTENERS_WRITE_INTERVAL_S
        ):
            return self
        return self.followed("continued", "continued", cursor)

    def followed(self, why: str, start: str, after: Cursor) -> "Entry":
        """This one ends, and the same listen goes on behind another event."""
        self.end(why)
        return self._record.add(self.begun._replace(start=start, after=after))

    def end(self, why: str) -> None:
        """Requests that may be followed by others end when none came for a while."""
        if self.begun.transport in _PROLONGED and why == "disconnected":
            self._record.pause(self)
        elif self.why is None:
            self.why = why
            self.ended_s = asyncio.get_running_loop().time()
            self._record.changed.add(self)


class Record:
    """The listens of one process. `node` is its name in them."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self.node = secrets.token_hex(4)
        self.ticks = 0
        self.changed: set[Entry] = set()
        self._pool = pool
        self._new: deque[Entry] = deque()
        self._waker = asyncio.Event()
        self._paused: dict[_Whose, Entry] = {}
        self._begun: Counter[int] = Counter()  # by client, within this hour
        self._many: set[tuple[int, int]] = set()  # clients and streams of which it was said

    async def begin(self, begun: NewListener, *, waits: bool) -> Entry | None:
        """Put a listen on record before anything is told, or at once after if nobody waits for it.
        None if it has so many that it is only said that they were there.

        Raises DatabaseUnavailable.
        """
        entry = self._taken_up(begun)
        if entry is not None:
            return entry
        if not self._may(begun):
            return None
        entry = self.add(begun)
        if waits:
            entry.written = asyncio.get_running_loop().create_future()
            try:
                await entry.written
            except asyncio.CancelledError:
                entry.end("disconnected")
                raise
        return entry

    def add(self, begun: NewListener) -> Entry:
        """It is written as soon as may be."""
        entry = Entry(self, begun)
        self._new.append(entry)
        self._waker.set()
        return entry

    def pause(self, entry: Entry) -> None:
        """A request has ended; the next may follow from where it got to."""
        entry.ended_s = asyncio.get_running_loop().time()
        before = self._paused.pop(_whose(entry.begun), None)
        if before is not None:
            self._left([before])
        self._paused[_whose(entry.begun)] = entry

    async def run(self) -> None:
        """Write until cancelled."""
        tick = asyncio.create_task(self._tick())
        try:
            while True:
                await self._waker.wait()
                self._waker.clear()
                await self._write_new()
        finally:
            tick.cancel()
            await asyncio.gather(tick, return_exceptions=True)

    async def finish(self) -> None:
        """Write what there is, if the database is there; nobody is told anything any more."""
        self._left([*self._paused.values()])
        self._paused.clear()
        with suppress(DatabaseUnavailable, TimeoutError):
            async with asyncio.timeout(limits.LISTENERS_FINISH_S_MAX):
                await self._write_new()
                await self._write_changed(progress=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(limits.LISTENERS_WRITE_INTERVAL_S)
            self.ticks += 1
            if self.ticks % _TICKS_PER_HOUR == 0:
                self._begun.clear()
                self._many.clear()
            over_s = asyncio.get_running_loop().time() - limits.LISTENER_PAUSE_S
            over = [whose for whose, one in self._paused.items() if one.ended_s < over_s]
            self._left([self._paused.pop(whose) for whose in over])
            if self._new:
                self._waker.set()  # those that could not be written
            try:
                await self._write_changed(progress=self.ticks % _TICKS_PER_PROGRESS == 0)
            except DatabaseUnavailable:
                pass
            except Exception:  # a partition that goes just now, say; the next tick tries again
                log.exception("listener_update_failed")

    def _taken_up(self, begun: NewListener) -> Entry | None:
        """The entry of the request before, if this one follows it."""
        whose = _whose(begun)
        entry = self._paused.get(whose)
        if entry is None or begun.start != "cursor" or begun.after != entry.cursor:
            return None
        return self._paused.pop(whose)

    def _may(self, begun: NewListener) -> bool:
        """False beyond the bound, after saying so once."""
        self._begun[begun.client_id] += 1
        if self._begun[begun.client_id] <= limits.LISTENERS_RECORDED_PER_CLIENT_HOUR:
            return True
        which = (begun.client_id, begun.stream_id)
        if which not in self._many:
            self._many.add(which)
            self.add(begun._replace(transport="unrecorded", name="")).end("unrecorded")
        return False

    def _left(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            entry.why = "disconnected"
            self.changed.add(entry)

    async def _write_new(self) -> None:
        """Those that somebody waits for are refused if they cannot be written."""
        while self._new:
            count = min(len(self._new), limits.LISTENERS_PER_STATEMENT_MAX)
            entries = [self._new.popleft() for _ in range(count)]
            try:
                async with reading(self._pool) as connection:
                    begun = [entry.begun for entry in entries]
                    places = await listener_rows.insert_listeners(connection, self.node, begun)
            except DatabaseUnavailable as error:
                self._new.extendleft(one for one in reversed(entries) if one.written is None)
                _refuse(entries, error)
                return
            except Exception:
                log.exception("listener_insert_failed", count=len(entries))
                _refuse(entries, DatabaseUnavailable())
                continue
            for entry, place in zip(entries, places, strict=True):
                entry.place = place
                if entry.written is not None and not entry.written.done():
                    entry.written.set_result(None)

    async def _write_changed(self, *, progress: bool) -> None:
        """Ends, and progress if it is time."""
        due = [(one, one.place) for one in self.changed if one.place and (progress or one.why)]
        now_s = asyncio.get_running_loop().time()
        for at in range(0, len(due), limits.LISTENERS_PER_STATEMENT_MAX):
            piece = due[at : at + limits.LISTENERS_PER_STATEMENT_MAX]
            told = [_progress(entry, place, now_s) for entry, place in piece]
            entries = [entry for entry, _ in piece]
            self.changed.difference_update(entries)  # what moves meanwhile comes again
            try:
                async with reading(self._pool) as connection:
                    await listener_rows.update_listeners(connection, told)
            except BaseException:
                self.changed.update(entries)
                raise


@asynccontextmanager
async def recording(database_url: str) -> AsyncIterator[Record]:
    """The record of a process, written until the block is left; its last listen must have ended.

    It has a connection of its own: readers that wait for theirs do not delay it.
    """
    async with reading_pool(database_url, "record", 1) as pool:
        record = Record(pool)
        log.info("listener_recorder_started", node=record.node)
        writing = asyncio.create_task(run_forever("record", record.run))
        try:
            yield record
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await record.finish()


def _whose(begun: NewListener) -> _Whose:
    return begun.client_id, begun.stream_id, begun.transport, begun.request.request_digest


def _progress(entry: Entry, place: ListenerKey, now_s: float) -> ListenerProgress:
    ended_s = None if entry.why is None else now_s - entry.ended_s
    return ListenerProgress(place, entry.cursor, entry.told, entry.why, ended_s)


def _refuse(entries: Iterable[Entry], error: DatabaseUnavailable) -> None:
    """Those that still wait."""
    for entry in entries:
        if entry.written is not None and not entry.written.done():
            entry.written.set_exception(error)
