"""Routes of the new events of a stream to the sessions of one process: each event is matched once
against the registrations of all of them, and only the sessions that it may concern evaluate it and
are woken. Plain module.

A routed event comes with the versions that it matches. The reader need not match it again: it knows
the bounds of these versions, and every change before the event was confirmed when it was matched.
Where a route may be incomplete (registrations change, the ring was emptied, too many events wait),
its reader reads every event as if there were no route, up to the position from which it is complete
again.

Concurrency contract: one event loop. The router's task awaits only between pages; everything else
runs without a wait.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import NamedTuple

from delivery.listening.services import ListenerServices
from delivery.sessions.event_blocks import EventBlocks
from eventhub.base import limits
from eventhub.base.event_loop import Waker, pause_together_s, run_forever, wait_until_set
from eventhub.eventlog.log import Follower
from eventhub.eventlog.stored import StoredEvent, StreamInfo
from eventhub.types.registry import ZoneHierarchy
from registrations.matching.metrics import LISTENERS, ReportedWork
from registrations.matching.spec import Specs
from registrations.matching.strategies import AUTO, StreamStrategy


class RoutedOwner:
    """The registrations of one owner in the matcher of a router. `since`: events after it are
    matched with all of them; None: some are not loaded.
    """

    def __init__(self, router: "StreamRouter") -> None:
        self.since: int | None = None
        self.routes: set[SessionRoute] = set()
        self._router = router
        self._versions: set[int] = set()

    def outdated(self) -> None:
        """Note that the registrations have changed, and are not loaded yet."""
        for route in self.routes:
            route.suspend()
        self.since = None

    def loaded(self, versions: Mapping[int, Specs], after: int) -> None:
        """Match new events with these versions, by id. `after`: no version is missing that applies
        to an event after it.
        """
        self._router.replace(self, self._versions, versions)
        self._versions = set(versions)
        self.since = max(after, self._router.sequence)

    def close(self) -> None:
        """Match events with these registrations no more."""
        self.since = None
        self._router.replace(self, self._versions, {})
        self._versions = set()


class RoutedEvent(NamedTuple):
    """An event, and the versions of registrations that it matches; their bounds are not tested."""

    stored: StoredEvent
    versions: list[int]


class SessionRoute:
    """The new events of a stream that one reader has to evaluate."""

    __slots__ = (
        "_complete",
        "_looked",
        "_owners",
        "_router",
        "_since",
        "looked_s",
        "waiting",
        "waker",
    )

    def __init__(self, router: "StreamRouter", owners: list[RoutedOwner]) -> None:
        self.waiting: deque[RoutedEvent] = deque()
        self.waker: Waker | None = None
        # when the reader last followed the router's position; not all at the same time
        self.looked_s = monotonic() - random.uniform(0, limits.SESSION_ROUTE_LOOK_S)  # noqa: S311
        self._looked = router.sequence  # to where it followed it
        self._router = router
        self._owners = owners
        self._since = router.sequence  # nothing of before is in `waiting`
        # when it was suspended: `waiting` has all from this sequence to that event
        self._complete: tuple[int, StoredEvent] | None = None

    def serves(self, sequence: int, life: int) -> bool:
        """Return whether every event after a sequence that the reader has to evaluate is in
        `waiting`, for a life of the ring.
        """
        since = self._from()
        return since is not None and sequence >= since and self._router.life == life

    def _from(self) -> int | None:
        """Return the sequence after which the route is complete; None if it is not."""
        since = self._since
        for one in self._owners:
            if one.since is None:
                return None
            since = max(since, one.since)
        return since

    def suspend(self) -> None:
        """Have the reader read for itself after what was matched so far."""
        since, last = self._from(), self._router.last
        if since is not None and last is not None:
            self._complete = since, last
        self.wake()

    def begin(self) -> None:
        """Begin at the router's position."""
        self.waiting.clear()
        self._since = self._looked = self._router.sequence
        self._complete = None
        self.wake()

    def rest(self, sequence: int, life: int) -> list[StoredEvent]:
        """Return what was still to evaluate after a sequence when the route was suspended, and the
        last event that was matched; empty if the reader has to read everything.
        """
        if self._complete is None or self._router.life != life:
            return []
        since, last = self._complete
        if not since <= sequence < last.sequence:
            return []
        stored = (one.stored for one in self.waiting)
        return [*(one for one in stored if sequence < one.sequence < last.sequence), last]

    def put(self, stored: StoredEvent, version: int) -> None:
        """Add an event that matches a version; beyond the bound of events the reader has to read
        for itself.
        """
        waiting = self.waiting
        if waiting and waiting[-1].stored is stored:
            waiting[-1].versions.append(version)
            return
        waiting.append(RoutedEvent(stored, [version]))
        if len(waiting) > limits.SESSION_ROUTE_EVENTS_MAX:
            waiting.clear()
            self._since, self._complete = stored.sequence, None
        self.wake()

    def after(self, sequence: int) -> list[RoutedEvent]:
        """Return the next events after a sequence; now and then, if there are none, the last one
        that was matched, so that the reader's position advances.
        """
        waiting = self.waiting
        while waiting and waiting[0].stored.sequence <= sequence:
            waiting.popleft()
        if waiting:
            self.looked_s = monotonic()  # its position advances
            return list(waiting)
        if not self.is_due:
            return []
        self.looked_s, self._looked = monotonic(), self._router.sequence
        last = self._router.last
        return [RoutedEvent(last, [])] if last is not None and last.sequence > sequence else []

    def has(self, sequence: int) -> bool:
        """Return whether there is an event after a sequence to evaluate."""
        return bool(self.waiting) and self.waiting[-1].stored.sequence > sequence

    @property
    def is_due(self) -> bool:
        """Whether the reader should follow the router's position, which has advanced."""
        advanced = self._router.sequence > self._looked
        return advanced and monotonic() >= self.looked_s + limits.SESSION_ROUTE_LOOK_S

    def read_ring(self) -> None:
        """Have the reader woken after the next change of the ring: it reads for itself."""
        self._router.reading.add(self)

    def wake(self) -> None:
        if self.waker is not None:
            self.waker.set()

    @property
    def blocks(self) -> EventBlocks:
        """The blocks of the stream."""
        return self._router.blocks

    def shares(self, life: int) -> bool:
        """Return whether the blocks are of a life of the ring, and others may read them."""
        return self._router.life == life and len(self._router.routes) > 1


class StreamRouter:
    """The routes of one stream, and the matcher of all their registrations."""

    def __init__(self, services: ListenerServices, stream: StreamInfo) -> None:
        self.routes: set[SessionRoute] = set()
        self.reading: set[SessionRoute] = set()  # whose readers wait for the ring
        self.sequence = 0  # of the last event that was matched
        self.last: StoredEvent | None = None
        self.life = -1  # of the ring; -1: nothing is routed
        self.blocks = EventBlocks()  # that its readers pass while they are behind
        self._services = services
        self._stream = stream
        self._hierarchy = ZoneHierarchy(services.types, stream.zone_id)
        self._matcher = StreamStrategy(AUTO, self._hierarchy).new()
        self._work = ReportedWork(AUTO)
        self._owners: dict[int, RoutedOwner] = {}  # by version
        self._waker = asyncio.Event()

    @contextmanager
    def route(self, owners: list[RoutedOwner]) -> Iterator[SessionRoute]:
        """Open a route for the registrations of some owners."""
        route = SessionRoute(self, owners)
        self.routes.add(route)
        for owner in owners:
            owner.routes.add(route)
        try:
            yield route
        finally:
            self.routes.discard(route)
            self.reading.discard(route)
            for owner in owners:
                owner.routes.discard(route)

    def replace(self, owner: RoutedOwner, old: set[int], new: Mapping[int, Specs]) -> None:
        """Replace the versions of an owner in the matcher."""
        for id in old - new.keys():
            self._matcher.remove(id)
            self._owners.pop(id, None)
        for id in new.keys() - old:
            self._matcher.add(id, new[id])
            self._owners[id] = owner

    async def run(self) -> None:
        """Route new events until the ring is emptied or the database is unavailable."""
        try:
            async with self._services.log.follow(self._stream, "now") as follower:
                follower.ring.wakers.add(self._waker)
                looking = asyncio.create_task(self._look())
                try:
                    await self._follow(follower)
                finally:
                    looking.cancel()
                    follower.ring.wakers.discard(self._waker)
        finally:
            self.life = -1
            self.blocks.clear()
            self._wake(self.routes)

    async def _follow(self, follower: Follower) -> None:
        self._begin(follower)
        looked_s = monotonic()
        while True:
            self._waker.clear()
            reading, self.reading = self.reading, set()
            self._wake(reading)
            page = follower.next_in_ring(limits.SESSION_ROUTE_PAGE_EVENTS_MAX)
            if page is None:
                return
            if page:
                await self._route(page)
                follower.advance_to(page[-1])
                await asyncio.sleep(0)
            else:
                look_s = pause_together_s(limits.SESSION_ROUTE_LOOK_S)
                await wait_until_set(self._waker, look_s)
            if monotonic() >= looked_s + limits.SESSION_ROUTES_CHECK_S:
                looked_s = monotonic()
                self.blocks.drop_idle()
                self._work.report(LISTENERS, self._matcher.counters)

    async def _look(self) -> None:
        """Wake the readers that are due, a few at a time: all at once would delay new events."""
        few, period_s = limits.SESSION_ROUTES_CHECKED_TOGETHER, limits.SESSION_ROUTES_CHECK_S
        while True:
            routes = [*self.routes]
            pause_s = period_s * few / max(len(routes), few)
            for at in range(0, max(len(routes), 1), few):
                some = routes[at : at + few]
                self._wake(each for each in some if each in self.routes and each.is_due)
                await asyncio.sleep(pause_s)

    def _begin(self, follower: Follower) -> None:
        """Begin at the position of a follower: no event before is routed."""
        self.sequence, self.last = follower.cursor.sequence, None
        self.life = follower.ring.life
        for route in self.routes:
            route.begin()

    async def _route(self, page: list[StoredEvent]) -> None:
        """Match a page, and wake the readers that it concerns. Every change of a registration that
        was made before the page was read is known then. Raises DatabaseUnavailable.
        """
        feed = self._services.feed
        await feed.confirm()
        events = [stored.event for stored in page]
        await self._hierarchy.learn(events, through=feed.applied.sequence)
        match, owners = self._matcher.match, self._owners
        for stored, event in zip(page, events, strict=True):
            self.sequence = stored.sequence
            for id in match(event):
                for route in owners[id].routes:
                    route.put(stored, id)
        self.last = page[-1]

    def _wake(self, routes: Iterable[SessionRoute]) -> None:
        for route in list(routes):
            route.wake()


class StreamRouters:
    """The routers of a process by stream, while they have routes."""

    def __init__(self, services: ListenerServices) -> None:
        self._services = services
        self._open: dict[int, tuple[StreamRouter, asyncio.Task[None]]] = {}
        self._users: dict[int, int] = {}

    @asynccontextmanager
    async def of(self, stream: StreamInfo) -> AsyncIterator[StreamRouter]:
        """Run the router of a stream until the end of the block."""
        if stream.id not in self._open:
            router = StreamRouter(self._services, stream)
            task = asyncio.create_task(run_forever("session routes", router.run))
            self._open[stream.id] = router, task
        self._users[stream.id] = self._users.get(stream.id, 0) + 1
        try:
            yield self._open[stream.id][0]
        finally:
            self._users[stream.id] -= 1
            if not self._users[stream.id]:
                del self._users[stream.id]
                _, task = self._open.pop(stream.id)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
