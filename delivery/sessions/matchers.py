"""The matchers of sessions in one process. The registrations of a session, and those of a session
group, have one matcher per stream, which all its readers share: an event is matched once for all
members of a group (RDY-08). Plain module.

Concurrency contract: one event loop. A matcher changes in time slices, so a reader waits for
`settled` before it calls `matching`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from delivery.listening.protocol import NOTHING_MATCHED, MatchedRegistrations
from delivery.listening.registration_matcher import RegistrationMatcher, reported
from delivery.listening.services import ListenerServices
from delivery.listening.version_loader import RegistrationSet
from delivery.ordering.queue import DeliveryQueue
from delivery.sessions.event_routing import (
    RoutedEvent,
    RoutedOwner,
    SessionRoute,
    StreamRouter,
    StreamRouters,
)
from delivery.sessions.routed_follower import RoutedFollower
from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Follower
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.types.registry import ZoneHierarchy
from registrations.catalog import SessionOwner
from registrations.feed import Confirmation

PositionOf = Callable[[], int]  # returns the last sequence that a reader has evaluated


class SharedMatcher:
    """The matcher of one owner's registrations in one stream, for all their readers."""

    def __init__(self, matcher: RegistrationMatcher, router: StreamRouter) -> None:
        self.matcher = matcher
        self.router = router
        self.routed = matcher.observer = RoutedOwner(router)
        self.readers: set[PositionOf] = set()
        self._loading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._memo: dict[Cursor, MatchedRegistrations] = {}  # of the last events

    @property
    def changes(self) -> bool:
        """Whether the matcher is being changed."""
        return self._loading.locked()

    async def apply(self, after: int) -> None:
        """Apply the changes that the feed has reported, for events after a sequence. Raises
        DatabaseUnavailable.

        A change once begun is completed, for the other readers, if its reader is cancelled.
        """
        if self.changes or not self.matcher.is_current(after):
            await asyncio.shield(self._begin(after))

    def load_ahead(self, after: int) -> None:
        """Begin to load the registrations for events after a sequence, which `apply` completes."""
        if not self.changes and not self.matcher.is_current(after):
            self._begin(after)

    async def settled(self) -> None:
        """Wait while the matcher is being changed."""
        async with self._loading:
            pass

    async def _apply(self, after: int) -> None:
        """Apply changes also for events after the positions of the other readers."""
        async with self._loading:
            await self.matcher.apply(min([after, *(position() for position in self.readers)]))

    def _begin(self, after: int) -> asyncio.Task[None]:
        task = asyncio.create_task(self._apply(after))
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved here, because its reader may be cancelled

    def matching(self, stored: StoredEvent) -> MatchedRegistrations:
        """Return what RegistrationMatcher.matching returns; one evaluation serves all readers. The
        result of an event never changes: versions apply by their bounds.
        """
        if len(self.readers) == 1:
            return self.matcher.matching(stored)
        cursor = stored.cursor
        found = self._memo.get(cursor)
        if found is None:
            found = self._memo[cursor] = self.matcher.matching(stored)
            if len(self._memo) > limits.SESSION_MATCHES_REMEMBERED:
                del self._memo[next(iter(self._memo))]
        return found


class SessionMatcher:
    """The matcher of one reader of a session (a ListenerMatcher): the registrations of the session
    itself, and those of its group.
    """

    def __init__(
        self, services: ListenerServices, shared: Sequence[SharedMatcher], route: SessionRoute
    ) -> None:
        self.route = route
        self.follower: RoutedFollower  # of the reader, once it follows
        self._confirmation = Confirmation(services.feed)
        self._shared = shared

    def follow(self, follower: Follower, queue: DeliveryQueue) -> RoutedFollower:
        """Return what takes the place of the reader's follower. `queue`: the session's."""
        self.follower = RoutedFollower(follower, self.route, lambda: queue.needs_all)
        return self.follower

    def load_ahead(self, after: int) -> None:
        """Begin to load the registrations for events after a sequence, which are read meanwhile."""
        for one in self._shared:
            one.load_ahead(after)

    def confirm_ahead(self, through: int) -> None:
        """Begin what `catch_up` waits for, for the events up to a sequence that the stream has."""
        self._confirmation.begin(through)

    async def catch_up(self, after: int, through: int) -> None:
        """Apply every change that concerns the events after a sequence, up to another one. Raises
        DatabaseUnavailable.
        """
        await self._confirmation.wait(through)
        for one in self._shared:
            await one.apply(after)

    async def narrowed(self, page: list[StoredEvent]) -> list[StoredEvent]:
        """Return the events of a page that may match a registration, and its last event; all, if
        any may match or all are needed.
        """
        keys = [one.matcher.spec_keys for one in self._shared]
        self.follower.narrows = None not in keys
        if not self.follower.shares_blocks:
            return page
        specs = [spec for found in keys if found is not None for spec in found]
        return await self.follower.blocks.select(page, specs)

    async def settled(self) -> None:
        """Wait while another reader changes one of the matchers."""
        while any(one.changes for one in self._shared):
            for one in self._shared:
                await one.settled()

    async def learn(self, events: Sequence[Event], *, through: int) -> None:
        """Load the declared types of events. Raises DatabaseUnavailable."""
        for one in self._shared:
            await one.matcher.learn(events, through=through)

    def matching(self, stored: StoredEvent) -> MatchedRegistrations:
        """Return the registrations that the event matches, and the variables that they bind."""
        return _together([one.matching(stored) for one in self._shared])

    def holding(self, routed: RoutedEvent) -> MatchedRegistrations:
        """Return what `matching` does for an event of the route."""
        stored, versions = routed
        return _together([one.matcher.holding(stored, versions) for one in self._shared])

    def shaped(self, stored: StoredEvent, registrations: Sequence[int]) -> StoredEvent:
        """Return what is delivered of an event that matches these registrations (OIF-06). A matcher
        of other registrations has no report of them.
        """
        if not any(one.matcher.has_reports for one in self._shared):
            return stored
        reports = [
            next(filter(None, each), None)
            for each in zip(
                *(one.matcher.reports(stored, registrations) for one in self._shared), strict=True
            )
        ]
        return reported(stored, reports)


def _together(matched: list[MatchedRegistrations]) -> MatchedRegistrations:
    """Return what several matchers found for one event."""
    found = [one for one in matched if one.ids]
    if not found:
        return NOTHING_MATCHED
    if len(found) == 1:
        return found[0]
    ids = sorted({id for one in found for id in one.ids})
    return MatchedRegistrations(
        ids, {id: name for one in found for id, name in (one.variables or {}).items()}
    )


class SharedMatchers:
    """The matchers of a process by owner and stream, while they have readers."""

    def __init__(self, services: ListenerServices) -> None:
        self._services = services
        self._routers = StreamRouters(services)
        self._open: dict[tuple[SessionOwner, int], tuple[SharedMatcher, AsyncExitStack]] = {}

    async def open(
        self,
        using: AsyncExitStack,
        owners: Sequence[SessionOwner],
        stream: StreamInfo,
        position: PositionOf,
    ) -> SessionMatcher:
        """Give a reader at this position the matcher of its owners, until `using` is closed."""
        shared = [
            await using.enter_async_context(self._shared(owner, stream, position))
            for owner in owners
        ]
        route = using.enter_context(shared[0].router.route([one.routed for one in shared]))
        return SessionMatcher(self._services, shared, route)

    @asynccontextmanager
    async def _shared(
        self, owner: SessionOwner, stream: StreamInfo, position: PositionOf
    ) -> AsyncIterator[SharedMatcher]:
        key = owner, stream.id
        if key not in self._open:
            closing = AsyncExitStack()
            router = await closing.enter_async_context(self._routers.of(stream))
            services = self._services
            hierarchy = ZoneHierarchy(services.types, stream.zone_id)
            about = RegistrationSet(owner=owner), stream.id, hierarchy
            opened = RegistrationMatcher.open(services.versions, services.feed, *about)
            made = SharedMatcher(await closing.enter_async_context(opened), router)
            closing.callback(made.routed.close)
            self._open[key] = made, closing
        shared, closing = self._open[key]
        shared.readers.add(position)
        try:
            yield shared
        finally:
            shared.readers.discard(position)
            if not shared.readers:
                del self._open[key]
                await closing.aclose()
