"""The services of listeners in the test's own process, on the database of a hub."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from delivery.listening.catchup import CatchUpScheduler
from delivery.listening.fan_out import FanOuts
from delivery.listening.listener_recorder import recording_listeners
from delivery.listening.pump import SocketServices
from delivery.listening.services import ListenerServices
from delivery.listening.socket_emits import SocketEmits
from delivery.listening.version_loader import VersionLoader
from delivery.sessions.delivery import SessionDelivery
from delivery.sessions.pull_source import PullServices
from delivery.sessions.pull_sources import PullSources
from delivery.sessions.socket_sessions import SessionServices
from eventhub.access.authorizer import Authorizer
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.fair_queue import Admission, Slots
from eventhub.eventlog.log import Log
from eventhub.http.emit import EmitServices
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from registrations.interest.live import Closures
from tests.acceptance.wire import until
from tests.live import LiveHub


@asynccontextmanager
async def services_of(hub: LiveHub) -> AsyncIterator[ListenerServices]:
    async with Log.open(database_url=hub.database_url) as log:
        authorizer = Authorizer(log, secret="of this process", clock=SystemClock())
        feed = Feed(log)
        following = [asyncio.create_task(authorizer.run()), asyncio.create_task(feed.run())]
        try:
            await until(authorizer.fresh)
            async with recording_listeners(hub.database_url) as record:
                clock, types = SystemClock(), TypeRegistry(log)
                parts = (log, authorizer, feed, clock, types, Closures(log, feed), record)
                fan_outs = FanOuts(authorizer, clock, types)
                yield ListenerServices(*parts, CatchUpScheduler(), VersionLoader(log), fan_outs)
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def socket_services(services: ListenerServices) -> SocketServices:
    """Return what the sockets of a process share."""
    emit_services = EmitServices(services.log, services.authorizer, services.types)
    emits = Admission(Slots(limits.EMIT_SLOTS, limits.EMIT_SLOTS_PER_CLIENT))
    delivery = SessionDelivery(services.log.lookups, services)
    pulls = PullServices(services, delivery.matchers, services.log.lookups)
    sessions = SessionServices(delivery, PullSources(pulls, delivery))
    return SocketServices(services, sessions, SocketEmits(emit_services, emits))
