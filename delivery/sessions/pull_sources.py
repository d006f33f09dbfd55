"""The sessions that are pulled in one process: each has a source of events per key, which remains
open for a while after a pull, so that the next one finds what was read. Plain module.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import NamedTuple
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from delivery.listening.services import ListenerServices
from delivery.sessions import claims
from delivery.sessions.attaching import required_consumer
from delivery.sessions.claims import Holder
from delivery.sessions.delivery import SessionDelivery
from delivery.sessions.errors import SessionNotReliable
from delivery.sessions.pull_changes import NO_STREAMS, StreamIds, find_streams
from delivery.sessions.pull_request import PullIn
from delivery.sessions.pull_source import PullServices, PullSource
from delivery.sessions.pulled_events import PulledQueue
from eventhub.access.grants import Grant
from eventhub.access.principal import Principal
from eventhub.access.sessions import GROUP, UnknownSession
from eventhub.base import limits
from eventhub.base.errors import Overloaded
from eventhub.base.event_loop import pause_together_s, run_forever
from eventhub.postgresql.connections import reading, reading_pool


class _SourceKey(NamedTuple):
    """A session, or that of a group that shares, and the rights of the pulls of one source."""

    session_id: int
    key_id: int
    narrowed: tuple[Grant, ...] | None


class Pulling(NamedTuple):
    """A session while it is pulled."""

    source: PullSource
    holder: Holder
    name: str
    streams: StreamIds = NO_STREAMS  # that the request names


class PullSources:
    """The sources of one process."""

    def __init__(self, services: PullServices, delivery: SessionDelivery) -> None:
        self.services = services
        self.delivery = delivery
        self._sources: dict[_SourceKey, PullSource] = {}
        self._opening: WeakValueDictionary[_SourceKey, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def pulling(
        self, principal: Principal, session: str, request: PullIn
    ) -> AsyncIterator[Pulling]:
        """Have pulls serve the client's session of that name or id, and use its source in the
        block. A connection that served the session ends it.

        Raises UnknownSession, WrongSessionKind, SessionDisconnected, SessionNotReliable,
        StreamOfNoRegistration, Overloaded, LimitReached, DatabaseUnavailable.
        """
        pulling = await self._pulling(principal, session, request)
        pulling.source.users += 1
        try:
            yield pulling
        finally:
            await self.leave(pulling)

    async def joining(self, principal: Principal, name: str, attachment: UUID) -> Pulling | None:
        """Return what a connection that is attached to the client's session of that name uses until
        it calls `leave`; None if the session is not in a group that shares. Raises what `pulling`
        raises.
        """
        async with reading(self.services.pool) as connection:
            found = await claims.find_pulled(connection, principal.client_id, name)
        if found is None or found.queue_id is None:
            return None
        pulling = await self._open(principal, found, attachment)
        pulling.source.users += 1
        return pulling

    async def leave(self, pulling: Pulling) -> None:
        """Use a source no more."""
        source = pulling.source
        source.users -= 1
        source.used_s = monotonic()
        if source.broken:
            await self._forget(source)

    async def run(self) -> None:
        """Close the sources that nobody uses, until cancelled."""
        while True:
            await asyncio.sleep(pause_together_s(limits.PULL_SOURCE_IDLE_S / 4))
            until_s = monotonic() - limits.PULL_SOURCE_IDLE_S
            for source in list(self._sources.values()):
                if source.used_s < until_s:
                    await self._forget(source)

    async def close(self) -> None:
        for source in list(self._sources.values()):
            source.users = 0
            await self._forget(source)

    async def _pulling(self, principal: Principal, session: str, request: PullIn) -> Pulling:
        """Attach pulls to a session, unless the request is refused, and return its source."""
        async with reading(self.services.pool) as connection:
            found = await claims.find_pulled(connection, principal.client_id, session)
            if found is None:
                raise UnknownSession(field="session")
            settings = required_consumer(found.settings)
            if not settings.reliable:
                raise SessionNotReliable(field="session")
            streams = await find_streams(connection, found.queue_id or settings.id, request)
            attachment = found.attachment
            if not found.pulled:
                attachment = await claims.attach_pulls(connection, settings.id, uuid4())
                if found.queue_id is not None:
                    await claims.attach_pulls(connection, found.queue_id, uuid4())
        if attachment is None:
            raise UnknownSession(field="session")
        self.delivery.replace(settings.id, attachment)
        if not found.pulled:
            self.delivery.announce_attached(settings.id)
        pulling = await self._open(principal, found, attachment)
        return pulling._replace(streams=streams)

    async def _open(
        self, principal: Principal, found: claims.PulledSettings, attachment: UUID
    ) -> Pulling:
        """Return the source of a session, or of its group if that shares, which is opened unless it
        is open.
        """
        settings = found.settings
        holder = Holder(found.queue_id or settings.id, settings.id, attachment)
        if found.queue_id is not None:
            settings = settings._replace(id=found.queue_id, name="", kind=GROUP)
        key = _SourceKey(settings.id, principal.key_id, principal.narrowed)
        async with self._opening.setdefault(key, asyncio.Lock()):
            source = self._sources.get(key)
            if source is not None and not (
                self._is_current(source, attachment) and source.change(settings)
            ):
                await self._forget(source)
                source = None
            if source is None:
                await self._make_room()
                queue = PulledQueue(settings, attachment, found.share_by)
                source = await PullSource.open(self.services, principal, queue)
                self._sources[key] = source
        return Pulling(source, holder, found.settings.name)

    def _is_current(self, source: PullSource, attachment: UUID) -> bool:
        is_group = source.settings.kind == GROUP  # which has no claims of connections
        return not source.broken and (is_group or source.session.attachment == attachment)

    async def _make_room(self) -> None:
        """Close the source that was used longest ago if there are too many. Raises Overloaded if
        all are in use.
        """
        if len(self._sources) < limits.PULL_SOURCES_MAX:
            return
        idle = [one for one in self._sources.values() if not one.users]
        if not idle:
            raise Overloaded("This process has the maximum number of pulled sessions; try again.")
        await self._forget(min(idle, key=lambda one: one.used_s))

    async def _forget(self, source: PullSource) -> None:
        """Have the source used no more; the last pull that uses it closes it."""
        self._sources = {key: one for key, one in self._sources.items() if one is not source}
        source.broken = True
        source.waker.set()
        if not source.users:
            await source.close()


@asynccontextmanager
async def pulled_sessions(
    database_url: str, services: ListenerServices, delivery: SessionDelivery
) -> AsyncIterator[PullSources]:
    """Serve pulls inside the block, on connections of their own."""
    pool = reading_pool(database_url, "pulls", limits.PULL_CONNECTIONS_MAX)
    async with pool:
        sources = PullSources(PullServices(services, delivery.matchers, pool), delivery)
        task = asyncio.create_task(run_forever("pull sources", sources.run))
        try:
            yield sources
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await sources.close()
