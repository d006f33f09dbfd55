"""The recorder of a process's listeners: when each started, from which event, how far events were
delivered, and how it ended (FOX-23). SQL module.

A listener starts when its row is committed, in one statement with the rows of all that start at the
same time. Progress is written periodically: after the process is killed its rows stay open, and the
cursor with which the client resumes shows the rest.

Concurrency contract: one event loop; `run` is one task, the only writer until it has ended.
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
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import run_forever
from eventhub.base.logs import get_logger
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import Connection, reading, reading_pool

log = get_logger(__name__)

_REQUEST_TRANSPORTS = ("poll", "lines")  # whose consecutive requests extend one row
_RequestKey = tuple[int, int, str, str]  # client, stream, transport and digest of such requests
_TICKS_PER_ROW = limits.LISTENER_ROW_S_MAX / limits.LISTENERS_WRITE_INTERVAL_S
_TICKS_PER_HOUR = int(3_600 / limits.LISTENERS_WRITE_INTERVAL_S)
_TICKS_PER_PROGRESS = int(limits.LISTENERS_PROGRESS_INTERVAL_S / limits.LISTENERS_WRITE_INTERVAL_S)


class ListenerEntry:
    """A row of the record, as its process knows it. The sender calls `advance`, then `end`."""

    __slots__ = (
        "_recorder",
        "committed",
        "cursor",
        "delivered_events",
        "end_reason",
        "ended_s",
        "key",
        "new",
        "since",
    )

    def __init__(self, recorder: "ListenerRecorder", new: NewListener) -> None:
        self._recorder = recorder
        self.new = new
        self.cursor = new.after
        self.delivered_events = 0
        self.since = recorder.ticks
        self.end_reason: str | None = None
        self.ended_s = 0.0  # of the loop's clock
        self.key: ListenerKey | None = None  # once it is committed
        self.committed: asyncio.Future[None] | None = None  # if the start waits for the commit

    def advance(self, cursor: Cursor, delivered_events: int) -> "ListenerEntry":
        """Add events delivered up to a cursor. Return the entry to use from now on: once a day a
        new one.
        """
        self.cursor = cursor
        self.delivered_events += delivered_events
        self._recorder.changed.add(self)
        if self._recorder.ticks - self.since < _TICKS_PER_ROW:
            return self
        return self.restart("continued", "continued", cursor)

    def restart(self, end_reason: str, start: str, after: Cursor) -> "ListenerEntry":
        """End this entry; return one of the same listener that starts after another event."""
        self.end(end_reason)
        return self._recorder.add(self.new._replace(start=start, after=after))

    def end(self, reason: str) -> None:
        """End the entry. The entry of a transport with a request per answer stays open for a while,
        because the next request may continue it.
        """
        if self.new.transport in _REQUEST_TRANSPORTS and reason == "disconnected":
            self._recorder.pause(self)
        elif self.end_reason is None:
            self.end_reason = reason
            self.ended_s = asyncio.get_running_loop().time()
            self._recorder.changed.add(self)


class ListenerRecorder:
    """The listeners of one process. `node` is the process's name in their rows."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self.node = secrets.token_hex(4)
        self.ticks = 0
        self.changed: set[ListenerEntry] = set()
        self._pool = pool
        self._new: deque[ListenerEntry] = deque()
        self._waker = asyncio.Event()
        self._paused: dict[_RequestKey, ListenerEntry] = {}
        self._started: Counter[int] = Counter()  # by client, within this hour
        self._overflowed: set[tuple[int, int]] = set()  # clients and streams that have that row

    async def start(self, new: NewListener, *, waits: bool) -> ListenerEntry | None:
        """Record a listener: committed before the return, or soon after unless `waits`. Return None
        above the client's bound: one row says that later listeners are not recorded.

        Raises DatabaseUnavailable.
        """
        entry = self._resumed(new)
        if entry is not None:
            return entry
        if not self._within_bound(new):
            return None
        entry = self.add(new)
        if waits:
            entry.committed = asyncio.get_running_loop().create_future()
            try:
                await entry.committed
            except asyncio.CancelledError:
                entry.end("disconnected")
                raise
        return entry

    def add(self, new: NewListener) -> ListenerEntry:
        """Queue an entry for the next statement."""
        entry = ListenerEntry(self, new)
        self._new.append(entry)
        self._waker.set()
        return entry

    def pause(self, entry: ListenerEntry) -> None:
        """Keep the entry of a request that ended, for the next one from its cursor."""
        entry.ended_s = asyncio.get_running_loop().time()
        before = self._paused.pop(_request_key(entry.new), None)
        if before is not None:
            self._end([before])
        self._paused[_request_key(entry.new)] = entry

    async def run(self) -> None:
        """Write until cancelled."""
        tick = asyncio.create_task(self._tick())
        try:
            while True:
                await self._waker.wait()
                self._waker.clear()
                await self._insert()
        finally:
            tick.cancel()
            await asyncio.gather(tick, return_exceptions=True)

    async def finish(self) -> None:
        """Write what is pending, if the database is available. Call it after the last listener
        ended.
        """
        self._end([*self._paused.values()])
        self._paused.clear()
        with suppress(DatabaseUnavailable, TimeoutError):
            async with asyncio.timeout(limits.LISTENERS_FINISH_S_MAX):
                await self._insert()
                await self._update(progress=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(limits.LISTENERS_WRITE_INTERVAL_S)
            self.ticks += 1
            if self.ticks % _TICKS_PER_HOUR == 0:
                self._started.clear()
                self._overflowed.clear()
            over_s = asyncio.get_running_loop().time() - limits.LISTENER_PAUSE_S
            over = [key for key, one in self._paused.items() if one.ended_s < over_s]
            self._end([self._paused.pop(key) for key in over])
            if self._new:
                self._waker.set()  # those that could not be written
            try:
                await self._update(progress=self.ticks % _TICKS_PER_PROGRESS == 0)
            except DatabaseUnavailable:
                pass
            except Exception:  # a partition removed meanwhile, say; the next tick tries again
                log.exception("listener_update_failed")

    def _resumed(self, new: NewListener) -> ListenerEntry | None:
        """Return the entry of the previous request if this one resumes from its cursor."""
        key = _request_key(new)
        entry = self._paused.get(key)
        if entry is None or new.start != "cursor" or new.after != entry.cursor:
            return None
        return self._paused.pop(key)

    def _within_bound(self, new: NewListener) -> bool:
        """Return False above the client's bound; the first time add a row that says so."""
        self._started[new.client_id] += 1
        if self._started[new.client_id] <= limits.LISTENERS_RECORDED_PER_CLIENT_HOUR:
            return True
        which = (new.client_id, new.stream_id)
        if which not in self._overflowed:
            self._overflowed.add(which)
            self.add(new._replace(transport="unrecorded", name="")).end("unrecorded")
        return False

    def _end(self, entries: Iterable[ListenerEntry]) -> None:
        for entry in entries:
            entry.end_reason = "disconnected"
            self.changed.add(entry)

    async def _insert(self) -> None:
        """Insert new rows. Starts that wait for a row that cannot be written are refused."""
        while self._new:
            count = min(len(self._new), limits.LISTENERS_PER_STATEMENT_MAX)
            entries = [self._new.popleft() for _ in range(count)]
            try:
                async with reading(self._pool) as connection:
                    new = [entry.new for entry in entries]
                    keys = await listener_rows.insert_listeners(connection, self.node, new)
            except DatabaseUnavailable as error:
                self._new.extendleft(one for one in reversed(entries) if one.committed is None)
                _refuse(entries, error)
                return
            except Exception:
                log.exception("listener_insert_failed", count=len(entries))
                _refuse(entries, DatabaseUnavailable())
                continue
            for entry, key in zip(entries, keys, strict=True):
                entry.key = key
                if entry.committed is not None and not entry.committed.done():
                    entry.committed.set_result(None)

    async def _update(self, *, progress: bool) -> None:
        """Write the ends of listeners, and with `progress` how far the open ones are."""
        due = [(one, one.key) for one in self.changed if one.key and (progress or one.end_reason)]
        now_s = asyncio.get_running_loop().time()
        for at in range(0, len(due), limits.LISTENERS_PER_STATEMENT_MAX):
            batch = due[at : at + limits.LISTENERS_PER_STATEMENT_MAX]
            rows = [_progress(entry, key, now_s) for entry, key in batch]
            entries = [entry for entry, _ in batch]
            self.changed.difference_update(entries)  # an entry that advances meanwhile is added
            try:
                async with reading(self._pool) as connection:
                    await listener_rows.update_listeners(connection, rows)
            except BaseException:
                self.changed.update(entries)
                raise


@asynccontextmanager
async def recording_listeners(database_url: str) -> AsyncIterator[ListenerRecorder]:
    """Run the recorder of a process inside the block. The last listener must end before the block
    does.

    The recorder has a connection of its own, so that readers that wait for one do not delay it.
    """
    async with reading_pool(database_url, "record", 1) as pool:
        recorder = ListenerRecorder(pool)
        log.info("listener_recorder_started", node=recorder.node)
        writing = asyncio.create_task(run_forever("record", recorder.run))
        try:
            yield recorder
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await recorder.finish()


def _request_key(new: NewListener) -> _RequestKey:
    return new.client_id, new.stream_id, new.transport, new.request.request_digest


def _progress(entry: ListenerEntry, key: ListenerKey, now_s: float) -> ListenerProgress:
    reason = entry.end_reason
    ended_s = None if reason is None else now_s - entry.ended_s
    return ListenerProgress(key, entry.cursor, entry.delivered_events, reason, ended_s)


def _refuse(entries: Iterable[ListenerEntry], error: DatabaseUnavailable) -> None:
    for entry in entries:
        if entry.committed is not None and not entry.committed.done():
            entry.committed.set_exception(error)
