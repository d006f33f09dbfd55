"""The closures of streams, cached and kept current in one process. SQL module.

`current` includes every interest that was registered, or had a listener, before the call. A closure
is rebuilt only when a change concerns its stream. A closure of many registrations is extended with
new ones, and rebuilt in the background at intervals to drop ended ones; a caller that would wait
for it too long gets a closure that matches everything.
Concurrency contract: one event loop; returned values never change.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import orjson

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError, Overloaded
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import reading
from registrations.feed import CatalogChange, Feed
from registrations.filters.closure.union import EVERYTHING, Closure, alternative_node
from registrations.filters.printed import printed
from registrations.interest.builder import BuiltClosure, ClosureBuilder
from registrations.interest.listeners import ListenerInterests
from registrations.interest.stored import (
    ClosureMarks,
    InterestScope,
    Supertypes,
    read_changed_streams,
    read_marks,
)
from registrations.interest.throttle import AudienceThrottle


class StreamInterest(NamedTuple):
    """The interest in a stream. `quench`: it includes listeners, and a producer may suppress events
    that do not match; otherwise it includes registrations only. `tag`: equal for equal interests.
    """

    closure: Closure
    alternatives: tuple[str, ...]  # of the closure, in the predicate language
    supertypes: Supertypes
    quench: bool
    tag: str
    through: Cursor = Cursor("", 0)  # it includes the changes in `system` up to this event
    revision: int = 0  # later interests of a process have greater numbers

    @classmethod
    def of(cls, closure: Closure, supertypes: Supertypes, *, quench: bool) -> "StreamInterest":
        texts = tuple(printed(alternative_node(parts)) for parts in closure.form)
        types = sorted([*at, *names] for at, names in supertypes.items())
        whole = orjson.dumps([texts, closure.widened, types, quench])
        return cls(closure, texts, supertypes, quench, hashlib.sha256(whole).hexdigest()[:16])

    @property
    def filter(self) -> str:
        """The whole closure in the predicate language."""
        if not self.alternatives:
            return "false"
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        return f"(or {' '.join(self.alternatives)})"

    def hierarchy(self, event: Event) -> tuple[str, ...]:
        """Return the event's type, then its supertypes."""
        return (event.type, *self.supertypes.get((event.domain, event.type), ()))


_BuildTask = asyncio.Task[EventHubError | None]


class _PendingBuild(NamedTuple):
    """A running build that the caller waits for."""

    task: _BuildTask
    quench: bool


class _CachedClosure:
    """A cached closure. `interest` is of the time `started_s`, with later additions."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()  # held for short reads only
        self.task: _BuildTask | None = None
        self.stale = True  # the closure has to be rebuilt ...
        self.lost = True  # ... and so has the one that is being built
        self.added: set[int] = set()  # barriers whose changes are not in it yet
        self.since: set[int] = set()  # barriers since the running build started
        self.ended = False  # it may contain ended interests
        self.started_s = float("-inf")
        self.rebuild_s = float("-inf")  # when a closure of many registrations may be rebuilt
        self.marks: ClosureMarks | None = None
        self.built: BuiltClosure | None = None
        self.interest: StreamInterest
        self.meanwhile: StreamInterest | None = None  # everything, while the closure is unknown

    def touch(self, barriers: Sequence[int]) -> None:
        """Note changes at some barriers."""
        self.ended = True
        self.added.update(barriers)
        if self.task is not None:
            self.since.update(barriers)
        if len(self.added) > limits.CLOSURE_ADDED_MAX:
            self.lose()

    def lose(self) -> None:
        """Note that the changes are unknown or too many."""
        self.stale = self.lost = True
        self.added.clear()
        self.since.clear()


class Closures:
    """The closures of one process; `listeners` are those of the process."""

    def __init__(self, hub_log: Log, feed: Feed) -> None:
        self.listeners = ListenerInterests(hub_log)
        self._log = hub_log
        self._feed = feed
        self._cached: dict[InterestScope, _CachedClosure] = {}
        self._barriers: list[int] = []  # of changes whose streams are not known yet
        self._lock = asyncio.Lock()
        self._revisions = 0
        self._builder = ClosureBuilder(hub_log)
        self._throttle = AudienceThrottle()
        self._wakers: set[asyncio.Event] = set()
        feed.listeners.add(self._on_change)

    async def current(self, scope: InterestScope) -> StreamInterest:
        """Return the interest at the time of the call. Raises DatabaseUnavailable."""
        requested_s = asyncio.get_running_loop().time()
        await self._feed.confirm()
        through = self._feed.applied
        await self._sort_changes()
        cached = self._cached.pop(scope, None) or _CachedClosure()
        self._cached[scope] = cached  # evicts the least recently used
        while len(self._cached) > limits.CLOSURES_CACHED_MAX:
            del self._cached[next(iter(self._cached))]
        return (await self._known(cached, scope, requested_s))._replace(through=through)

    async def changes(self, scope: InterestScope) -> AsyncIterator[StreamInterest]:
        """Yield the interest now and after each rebuild, without end. Consecutive values may be
        equal; the caller compares them. Raises Overloaded.
        """
        if len(self._wakers) >= limits.INTERESTS_PER_PROCESS_MAX:
            message = "This process notifies as many producers as it can; poll the closure instead."
            raise Overloaded(message)
        waker = asyncio.Event()
        self._wakers.add(waker)
        yielded = -1
        try:
            while True:
                waker.clear()
                try:
                    interest = await self.current(scope)
                    if interest.revision != yielded:
                        yielded = interest.revision
                        yield interest
                except DatabaseUnavailable:
                    pass
                await asyncio.sleep(limits.INTEREST_PAUSE_S)  # combines many changes into one
                try:
                    async with asyncio.timeout(limits.INTEREST_CHECK_S):
                        await waker.wait()
                except TimeoutError:
                    pass  # listeners start without an event in `system`
        finally:
            self._wakers.discard(waker)

    def _on_change(self, change: CatalogChange | None) -> None:
        if change is None or len(self._barriers) >= limits.CLOSURE_BARRIERS_MAX:
            self._barriers.clear()
            for cached in self._cached.values():
                cached.lose()
        elif self._cached:
            self._barriers.append(change.barrier)
        self._wake()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def _sort_changes(self) -> None:
        """Assign the changes so far to the cached closures of their streams."""
        async with self._lock:
            if not self._barriers:
                return
            barriers, self._barriers = self._barriers, []
            try:
                async with reading(self._log.pool) as connection:
                    changed_streams = await read_changed_streams(connection, barriers)
            except BaseException:
                self._barriers += barriers
                raise
            for scope, cached in self._cached.items():
                if scope.stream_id in changed_streams:
                    cached.touch(changed_streams[scope.stream_id])

    async def _known(
        self, cached: _CachedClosure, scope: InterestScope, requested_s: float
    ) -> StreamInterest:
        """Return the interest as of the request, or everything if that takes too long."""
        until_s = requested_s + limits.CLOSURE_WAIT_S
        while True:
            async with cached.lock:
                found = await self._cached_or_pending(cached, scope, requested_s)
            if isinstance(found, StreamInterest):
                return found
            left_s = until_s - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait([found.task], timeout=max(0.0, left_s))
            if not done:
                return self._everything(cached, quench=found.quench)
            error = found.task.result()
            if error is not None:
                raise error

    async def _cached_or_pending(
        self, cached: _CachedClosure, scope: InterestScope, requested_s: float
    ) -> StreamInterest | _PendingBuild:
        """Return the cached interest, updated if possible, or the build to wait for."""
        if cached.started_s >= requested_s:
            return cached.interest
        async with reading(self._log.pool) as connection:
            marks = await read_marks(connection, scope)
        built = cached.built
        if built is not None and not cached.stale:
            same = marks == cached.marks and not cached.added
            if same or (built.many and await self._add(cached, built, scope, marks)):
                if built.many and cached.ended and self._is_time(cached, scope):
                    self._start(cached, scope, marks)
                return cached.interest
        if cached.task is None and not self._is_time(cached, scope):
            return self._everything(cached, quench=marks.quench)
        return _PendingBuild(self._start(cached, scope, marks), marks.quench)

    def _is_time(self, cached: _CachedClosure, scope: InterestScope) -> bool:
        """Return whether a rebuild may start: those of many registrations and of audiences are
        limited.
        """
        now_s = asyncio.get_running_loop().time()
        return now_s >= cached.rebuild_s and self._throttle.may_start(scope, now_s)

    def _everything(self, cached: _CachedClosure, *, quench: bool) -> StreamInterest:
        if cached.meanwhile is None or cached.meanwhile.quench != quench:
            cached.meanwhile = StreamInterest.of(EVERYTHING, {}, quench=quench)._replace(
                revision=self._next()
            )
        return cached.meanwhile

    def _start(
        self, cached: _CachedClosure, scope: InterestScope, marks: ClosureMarks
    ) -> _BuildTask:
        if cached.task is None:
            cached.task = asyncio.create_task(self._build(cached, scope, marks))
        return cached.task

    async def _add(
        self, cached: _CachedClosure, built: BuiltClosure, scope: InterestScope, marks: ClosureMarks
    ) -> bool:
        """Extend a closure of many registrations with new ones; return False if it has to be
        rebuilt.
        """
        if cached.marks is None or marks.members != cached.marks.members:
            cached.lose()
            return False
        barriers, cached.added = sorted(cached.added), set()
        try:
            wider = await self._builder.add(built, scope, barriers, listeners=marks.quench)
            if wider is None:
                cached.lose()
                return False
            interest = await _stream_interest(wider, marks)
        except BaseException:
            cached.added.update(barriers)  # else no interest would include these changes
            raise
        self._cache(cached, wider, marks, interest)
        return True

    async def _build(
        self, cached: _CachedClosure, scope: InterestScope, marks: ClosureMarks
    ) -> EventHubError | None:
        """Build the closure; changes that arrive during the build are applied after it."""
        clock = asyncio.get_running_loop().time
        started_s = clock()
        cached.lost = cached.ended = False
        cached.since.clear()
        try:
            async with self._throttle.slot(scope):
                build_s = clock()
                built = await self._builder.build(scope, listeners=marks.quench)
                took_s, many = clock() - build_s, built.many
                self._throttle.built(scope, took_s=took_s, many=many, now_s=clock())
            interest = await _stream_interest(built, marks)
        except BaseException as error:
            cached.task = None
            cached.lose()
            if not isinstance(error, EventHubError):
                raise
            return error
        async with cached.lock:  # excludes an extension of the previous closure
            cached.task = None
            cached.stale = cached.lost
            cached.started_s = started_s
            pause_s = max(limits.CLOSURE_REBUILD_S, limits.CLOSURE_REBUILD_SHARE * took_s)
            cached.rebuild_s = clock() + pause_s if many else float("-inf")
            cached.added, cached.since = cached.since, set()
            self._cache(cached, built, marks, interest)
        self._wake()
        return None

    def _cache(
        self,
        cached: _CachedClosure,
        built: BuiltClosure,
        marks: ClosureMarks,
        interest: StreamInterest,
    ) -> None:
        cached.interest = interest._replace(revision=self._next())
        cached.built, cached.marks = built, marks

    def _next(self) -> int:
        self._revisions += 1
        return self._revisions


async def _stream_interest(built: BuiltClosure, marks: ClosureMarks) -> StreamInterest:
    """Create the interest in a thread: printing a large closure takes as long as many requests."""
    return await asyncio.to_thread(
        StreamInterest.of, built.closure, built.supertypes, quench=marks.quench
    )
