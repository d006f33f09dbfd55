"""The bridge from the tables to the matchers of one process: follows `system` and says which
registrations changed. Exactness: whoever has read a batch of events awaits `confirm()` and then
matches; by then every change that was visible before the batch's last event was appended has been
told. Concurrency contract: one event loop; `run` is one task; listeners are called in the order of
the changes and must not block. SQL module.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import heads
from eventhub.eventlog.stored import StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading

log = get_logger(__name__)
throttled = ThrottledLog(log)

REGISTRATION = "registration."
GROUP = "registration_group."
POLICY = "stream.changed"


class Change(NamedTuple):
    """A registration was created, changed or deleted at a barrier, or a group of them was suspended
    or resumed.
    """

    registration: int | None  # None: all of a client that ended, or of a group
    barrier: int
    group: int | None = None


Listener = Callable[[Change | None], None]  # None: what happened is not known, load everything


class Feed:
    """What `system` says of registrations, to everything in this process that matches."""

    def __init__(self, hub_log: Log) -> None:
        self.listeners: set[Listener] = set()  # of everything
        self._some: set[Listener] = set()  # of some registrations: `told_of`
        self._by_registration: dict[int, set[Listener]] = {}
        self.policies: set[Callable[[], None]] = set()  # called when a stream's may be another
        self.told = 0  # everything in `system` up to this sequence was told
        self._log = hub_log
        self._waiting: list[asyncio.Future[None]] = []
        self._waker = asyncio.Event()

    @contextmanager
    def told_of(self, registrations: Iterable[int], listener: Listener) -> Iterator[None]:
        """Until the end of the block a listener hears of changes of those registrations, and of all
        that may concern any: of groups, of clients that end, of what is not known.
        """
        ids = frozenset(registrations)
        self._some.add(listener)
        for id in ids:
            self._by_registration.setdefault(id, set()).add(listener)
        try:
            yield
        finally:
            self._some.discard(listener)
            for id in ids:
                self._by_registration[id].discard(listener)
                if not self._by_registration[id]:
                    del self._by_registration[id]

    async def confirm(self) -> None:
        """Return when everything is told that `system` held when this was called.

        One look at its head serves all who wait. Raises DatabaseUnavailable.
        """
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(told)
        self._waker.set()
        try:
            async with asyncio.timeout(limits.READ_TIMEOUT_S_MAX):
                await told
        except TimeoutError:
            raise DatabaseUnavailable from None

    async def run(self) -> None:
        """Follow until cancelled, through every absence of the database."""
        while True:
            try:
                async with self._log.follow(SYSTEM_STREAM_ID, "now") as follower:
                    follower.ring.wakers.add(self._waker)
                    self.told = follower.cursor.sequence
                    try:
                        self._tell(None)  # what happened before `now` was not followed
                        await self._follow(follower)
                    finally:
                        follower.ring.wakers.discard(self._waker)
            except EventHubError as error:
                throttled.warning("registrations_not_followed", error=error.code)
            self._waiting = [told for told in self._waiting if not told.done()]  # others gave up
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
                self._waiting += (
                    waiting  # whoever waits is served after the next start, or gives up
                )
                raise
            for told in waiting:
                if not told.done():  # else its owner has gone
                    told.set_result(None)
            if not self._waiting:
                await self._waker.wait()

    async def _head(self) -> int:
        async with reading(self._log.lookups) as connection:
            return (await heads(connection, [SYSTEM_STREAM_ID]))[SYSTEM_STREAM_ID].sequence

    async def _apply(self, follower: Follower, head: int) -> None:
        while follower.cursor.sequence < head:
            batch = follower.ready(limits.READ_EVENTS_MAX) or await follower.catch_up()
            for stored in batch:
                follower.took(stored)
                self._read(stored)
            self.told = follower.cursor.sequence

    def _read(self, stored: StoredEvent) -> None:
        event = stored.event
        if event.type.startswith(REGISTRATION):
            self._tell(Change(event.attributes["registration"], event.attributes["barrier"]))
        elif event.type.startswith(GROUP) and event.attributes["barrier"] is not None:
            self._tell(Change(None, event.attributes["barrier"], event.attributes["group"]))
        elif event.type == POLICY:
            self._tell_policies()

    def _tell(self, change: Change | None) -> None:
        for listener in (*self.listeners, *self._concerned(change)):
            listener(change)
        if change is None:
            self._tell_policies()

    def _concerned(self, change: Change | None) -> set[Listener]:
        """Who listens for some registrations, and may have to know."""
        if change is None or change.registration is None:
            return self._some
        return self._by_registration.get(change.registration, set())

    def _tell_policies(self) -> None:
        for listener in list(self.policies):
            listener()
