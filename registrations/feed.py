"""The bridge from the tables to the matchers of one process: it follows `system` and notifies
listeners of changed registrations.

Exactness: a reader awaits `confirm()` after reading a batch of events and before matching it, or
`confirm(head)` with a head of `system` from the snapshot in which the batch was read. Listeners
have then been notified of every change that was visible before the batch's last event was appended.
A call that begins when the stream already has some events serves all batches of these events:
`Confirmation`.

Concurrency: one event loop. `run` is one task. Listeners are called in the order of the changes and
must not block. SQL module.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import heads
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading
from registrations.catalog import SessionOwner

log = get_logger(__name__)
throttled = ThrottledLog(log)

REGISTRATION = "registration."
GROUP = "registration_group."
SESSIONS = ("session.", "session_group.")
PATTERNS = ("pattern.", "pattern_group.")
POLICY = "stream.changed"
ENDPOINT = "endpoint."


class CatalogChange(NamedTuple):
    """A change at a barrier: a registration was created, changed or deleted, or a group of them was
    suspended or resumed, also as the root of a session or session group.
    """

    registration: int | None  # None: all of a deleted client or session, or of a group
    barrier: int
    group: int | None = None
    owner: SessionOwner | None = None  # of the registration


# with None: the changes are unknown, load everything
Listener = Callable[[CatalogChange | None], None]


class Feed:
    """The changes of registrations in `system`, for all matchers of this process."""

    def __init__(self, hub_log: Log) -> None:
        self.listeners: set[Listener] = set()  # notified of every change
        self._subscribers: set[Listener] = set()  # notified of some registrations: `subscription`
        self._by_registration: dict[int, set[Listener]] = {}
        self._by_owner: dict[SessionOwner, set[Listener]] = {}
        # notified of changed sessions and session groups; None: any may be changed
        self.session_listeners: set[Callable[[SessionOwner | None], None]] = set()
        self.policy_listeners: set[Callable[[], None]] = set()  # notified of streams' policies
        # notified of changed endpoints, by id; None: any may have changed
        self.endpoint_listeners: set[Callable[[int | None], None]] = set()
        # notified of pattern groups whose patterns changed, by id; None: any may have changed
        self.pattern_listeners: set[Callable[[int | None], None]] = set()
        self.applied = Cursor("", 0)  # listeners were notified of `system` up to this event
        self._log = hub_log
        self._waiting: list[asyncio.Future[None]] = []
        self._waker = asyncio.Event()

    @contextmanager
    def subscription(self, registrations: Iterable[int], listener: Listener) -> Iterator[None]:
        """Notify a listener, until the end of the block, of changes of these registrations, and of
        changes that may concern any: of groups, deleted clients, and unknown ones.
        """
        ids = frozenset(registrations)
        self._subscribers.add(listener)
        for id in ids:
            self._by_registration.setdefault(id, set()).add(listener)
        try:
            yield
        finally:
            self._subscribers.discard(listener)
            for id in ids:
                self._by_registration[id].discard(listener)
                if not self._by_registration[id]:
                    del self._by_registration[id]

    @contextmanager
    def owner_subscription(
        self, owners: Iterable[SessionOwner], listener: Listener
    ) -> Iterator[None]:
        """Notify a listener, until the end of the block, like `subscription`, of changes of all
        registrations of sessions and session groups, new ones too.
        """
        self._subscribers.add(listener)
        every = tuple(owners)
        for owner in every:
            self._by_owner.setdefault(owner, set()).add(listener)
        try:
            yield
        finally:
            self._subscribers.discard(listener)
            for owner in every:
                self._by_owner[owner].discard(listener)
                if not self._by_owner[owner]:
                    del self._by_owner[owner]

    async def confirm(self, head: int | None = None) -> None:
        """Wait until listeners were notified of everything that `system` held at the call. `head`:
        a head of `system` that is new enough for the caller, if it has one.

        One read of the head serves all waiting callers. Raises DatabaseUnavailable.
        """
        if head is None or head > self.applied.sequence:
            await confirmed(self.ask())

    def ask(self) -> "asyncio.Future[None]":
        """Begin what `confirm` does; `confirmed` waits for it."""
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(asked)
        self._waker.set()
        return asked

    async def run(self) -> None:
        """Follow `system` until cancelled, and reconnect when the database was unavailable."""
        while True:
            try:
                async with self._log.follow(SYSTEM_STREAM_ID, "now") as follower:
                    follower.ring.wakers.add(self._waker)
                    self.applied = follower.cursor
                    try:
                        self._notify(None)  # changes before `now` were not followed
                        await self._follow(follower)
                    finally:
                        follower.ring.wakers.discard(self._waker)
            except EventHubError as error:
                throttled.warning("registrations_not_followed", error=error.code)
            self._waiting = [one for one in self._waiting if not one.done()]  # others timed out
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _follow(self, follower: Follower) -> None:
        while True:
            self._waker.clear()
            waiting, self._waiting = self._waiting, []
            try:
                head = follower.ring.next - 1
                if waiting:
                    head = max(head, await self._head())
                await self._apply(follower, head)
            except BaseException:
                self._waiting += waiting  # served after the next start, unless they time out
                raise
            for asked in waiting:
                if not asked.done():  # else the caller was cancelled
                    asked.set_result(None)
            if not self._waiting:
                await self._waker.wait()

    async def _head(self) -> int:
        async with reading(self._log.lookups) as connection:
            return (await heads(connection, [SYSTEM_STREAM_ID]))[SYSTEM_STREAM_ID].sequence

    async def _apply(self, follower: Follower, head: int) -> None:
        while follower.cursor.sequence < head:
            batch = follower.next_in_ring(limits.READ_EVENTS_MAX) or await follower.catch_up()
            for stored in batch:
                follower.advance_to(stored)
                self._read(stored)
            self.applied = follower.cursor

    def _read(self, stored: StoredEvent) -> None:
        event = stored.event
        values = event.attributes
        if event.type.startswith(REGISTRATION):
            owner = SessionOwner(values.get("session"), values.get("session_group"))
            self._notify(CatalogChange(values["registration"], values["barrier"], owner=owner))
        elif event.type.startswith(GROUP) and values["barrier"] is not None:
            self._notify(CatalogChange(None, values["barrier"], values["group"]))
        elif event.type.startswith(SESSIONS):
            if values.get("barrier") is not None:
                self._notify(CatalogChange(None, values["barrier"], values["registration_group"]))
            self._notify_session_listeners(_changed_owner(event))
        elif event.type.startswith(PATTERNS):
            if values.get("barrier") is not None:
                self._notify_pattern_listeners(values["pattern_group"])
        elif event.type == POLICY:
            self._notify_policy_listeners()
        elif event.type.startswith(ENDPOINT):
            self._notify_endpoint_listeners(event.attributes.get("endpoint"))

    def _notify(self, change: CatalogChange | None) -> None:
        for listener in (*self.listeners, *self._listeners_of(change)):
            listener(change)
        if change is None:
            self._notify_policy_listeners()
            self._notify_session_listeners(None)
            self._notify_endpoint_listeners(None)
            self._notify_pattern_listeners(None)

    def _listeners_of(self, change: CatalogChange | None) -> set[Listener]:
        """Return the subscribers that the change may concern."""
        if change is None or change.registration is None:
            return self._subscribers
        found = self._by_registration.get(change.registration, set())
        if change.owner is not None:
            found = found | self._by_owner.get(change.owner, set())
        return found

    def _notify_session_listeners(self, owner: SessionOwner | None) -> None:
        for listener in list(self.session_listeners):
            listener(owner)

    def _notify_policy_listeners(self) -> None:
        for listener in list(self.policy_listeners):
            listener()

    def _notify_endpoint_listeners(self, endpoint_id: int | None) -> None:
        for listener in list(self.endpoint_listeners):
            listener(endpoint_id)

    def _notify_pattern_listeners(self, group_id: int | None) -> None:
        for listener in list(self.pattern_listeners):
            listener(group_id)


def _changed_owner(event: Event) -> SessionOwner | None:
    """Return the session or session group that an event is about; None if it names none."""
    values = event.attributes
    if event.type.startswith(SESSIONS[0]) and values.get("session") is not None:
        return SessionOwner(values["session"])
    group = values.get("session_group")
    return None if group is None else SessionOwner(None, group)


async def confirmed(asked: "asyncio.Future[None]") -> None:
    """Wait for what Feed.ask returned, which is cancelled if that takes too long: then it raises
    DatabaseUnavailable.
    """
    try:
        async with asyncio.timeout(limits.READ_TIMEOUT_S_MAX):
            await asked
    except TimeoutError:
        raise DatabaseUnavailable from None


class Confirmation:
    """The confirmation of one reader: of all events that the stream had at a moment by one read of
    the head of `system`. A change that is committed later does not concern them.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._through = 0
        self._asked: asyncio.Future[None] | None = None

    def begin(self, through: int) -> None:
        """Begin to confirm for the events up to a sequence, which the stream has; forget what was
        confirmed before, of another history perhaps.
        """
        self._asked, self._through = self._feed.ask(), through

    async def wait(self, through: int) -> None:
        """Wait until listeners were notified of every change that concerns the events up to a
        sequence, which the stream has. Raises DatabaseUnavailable.
        """
        if self._asked is None or self._asked.cancelled() or through > self._through:
            self.begin(through)
        if self._asked is not None and not self._asked.done():
            await confirmed(self._asked)
