"""The parts that one web process runs in addition to its requests, opened and closed together: the
log and its maintenance, the authorizer, the types and the feed of registrations. Composition root.
Plain module.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from delivery import log_retention
from delivery.forward.backlog import Backlog
from delivery.forward.bounds import BacklogSettings
from delivery.health.watch import HealthWatch, WatchedParts
from delivery.partitions.archive import PartitionArchive
from delivery.presence.watch import PresenceWatch
from delivery.tenant_limits.usage import QuotaWatch
from eventhub.access.authorizer import Authorizer
from eventhub.access.zone_names import zone_names
from eventhub.applications.heartbeats import HeartbeatWatch
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env
from eventhub.base.event_loop import run_forever
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.log import Log
from eventhub.eventlog.maintenance import Maintenance
from eventhub.eventlog.retention.disk import Disk
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.http.tracing import Tracer
from eventhub.monitoring.heartbeat import membership
from eventhub.monitoring.watch import MemberWatch
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from registrations.interest.live import Closures
from registrations.timers.delaying import delayed_events


class Hub(NamedTuple):
    """The objects that routes and sessions of one process share."""

    log: Log
    authorizer: Authorizer
    feed: Feed
    types: TypeRegistry
    closures: Closures
    health: HealthWatch
    tracer: Tracer
    env: Env


@asynccontextmanager
async def open_hub(env: Env) -> AsyncIterator[Hub]:
    """Open the hub's objects and run their background tasks until the block is left; the database
    may be unavailable meanwhile.
    """
    opened = Log.open(
        database_url=env.database_url,
        direct_url=env.database_direct_url,
        redis_url=env.redis_url,
        archive=archive_of(env.archive_url),
        mark_url=env.mark_url,
    )
    async with (
        opened as log,
        membership("web", env.database_url) as member,
        delayed_events(env.database_url) as log.store_delayed,
    ):
        authorizer = Authorizer(
            log,
            secret=env.secret_key,
            clock=SystemClock(),
            former_secrets=env.secret_key_fallbacks,
        )
        feed = Feed(log)
        types = TypeRegistry(log)
        closures = Closures(log, feed)
        maintenance = open_maintenance(env, log.continuity)
        log.admit = maintenance.admit
        log.on_write_refused = maintenance.note_refused_write
        health = HealthWatch(WatchedParts(log, authorizer, maintenance), env, SystemClock())
        log.tail.on_stored = maintenance.wake
        tracer = Tracer(log)
        steps = PresenceWatch().check, HeartbeatWatch(SystemClock()).check
        members = MemberWatch(env.database_direct_url, SystemClock(), member.beat, steps)
        log.tail.listeners["member"] = members.wake
        tasks = [
            asyncio.create_task(run_forever("authorizer", authorizer.run)),
            asyncio.create_task(run_forever("feed", feed.run)),
            asyncio.create_task(run_forever("types", types.run)),
            asyncio.create_task(run_forever("listeners", closures.listeners.run)),
            asyncio.create_task(run_forever("maintenance", maintenance.run)),
            asyncio.create_task(run_forever("health", health.run)),
            asyncio.create_task(run_forever("members", members.run)),
            asyncio.create_task(run_forever("traces", tracer.run)),
        ]
        try:
            yield Hub(log, authorizer, feed, types, closures, health, tracer, env)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def open_maintenance(env: Env, continuity: Continuity) -> Maintenance:
    """Open the maintenance of the log, with the functions of other packages that it calls."""
    archive = (
        PartitionArchive(env.archive_url, env.database_direct_url) if env.archive_url else None
    )
    clock = SystemClock()
    backlog = Backlog(
        BacklogSettings(env.backlog_events, env.backlog_bytes, env.backlog_age_s), clock
    )
    hooks = RetentionHooks(
        needs=log_retention.lowest_needed_sequences,
        zones=zone_names,
        release=log_retention.copy_pending_payloads,
        shed=partial(log_retention.drop_oldest_partition, archive),
        bound=backlog.check,
        check_quotas=QuotaWatch(clock).check,
    )
    maintenance = Maintenance(
        env.database_direct_url,
        hooks,
        clock,
        quota_bytes=env.quota_bytes,
        disk=Disk(Path(env.store_dir)) if env.store_dir else None,
    )
    maintenance.continuity = continuity
    return maintenance
