"""What one web process runs beside its requests, opened and closed together: the log with its
upkeep, the authorizer, the types and the feed of registrations. Composition root. Plain module.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from delivery import log_retention
from delivery.forward.backlog import Backlog
from delivery.forward.bounds import Wanted
from delivery.health.watch import Watch, Watched
from delivery.partitions.archive import Shelf
from eventhub.access.authorizer import Authorizer
from eventhub.access.zone_names import zone_names
from eventhub.base.background import run_forever
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.log import Log
from eventhub.eventlog.maintenance import Maintenance
from eventhub.eventlog.retention.disk import Disk
from eventhub.eventlog.retention.drop import RetentionHooks
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from registrations.interest.live import Closures


class Hub(NamedTuple):
    """The parts that doors and sessions share in one process."""

    log: Log
    authorizer: Authorizer
    feed: Feed
    types: TypeRegistry
    closures: Closures
    health: Watch
    env: Env


@asynccontextmanager
async def open_hub(env: Env) -> AsyncIterator[Hub]:
    """Open the parts and keep them going until the block is left; the database may be away
    meanwhile.
    """
    opened = Log.open(
        database_url=env.database_url,
        direct_url=env.database_direct_url,
        redis_url=env.redis_url,
        archive=archive_of(env.archive_url),
        mark_url=env.mark_url,
    )
    async with opened as log:
        authorizer = Authorizer(log, secret=env.secret_key, clock=SystemClock())
        feed = Feed(log)
        types = TypeRegistry(log)
        closures = Closures(log, feed)
        upkeep = open_upkeep(env, log.continuity)
        log.admit = upkeep.admit
        health = Watch(Watched(log, authorizer, upkeep), env, SystemClock())
        log.tail.stir = upkeep.stir
        tasks = [
            asyncio.create_task(run_forever("authorizer", authorizer.run)),
            asyncio.create_task(run_forever("feed", feed.run)),
            asyncio.create_task(run_forever("types", types.run)),
            asyncio.create_task(run_forever("listens", closures.listeners.run)),
            asyncio.create_task(run_forever("upkeep", upkeep.run)),
            asyncio.create_task(run_forever("health", health.run)),
        ]
        try:
            yield Hub(log, authorizer, feed, types, closures, health, env)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def open_upkeep(env: Env, continuity: Continuity) -> Maintenance:
    """What keeps the log within its room, with what other rooms have to say about it."""
    shelf = Shelf(env.archive_url, env.database_direct_url) if env.archive_url else None
    clock = SystemClock()
    backlog = Backlog(Wanted(env.backlog_events, env.backlog_bytes, env.backlog_age_s), clock)
    rooms = RetentionHooks(
        needs=log_retention.needs,
        zones=zone_names,
        release=log_retention.release,
        shed=partial(log_retention.shed, shelf),
        bound=backlog.look,
    )
    upkeep = Maintenance(
        env.database_direct_url,
        rooms,
        clock,
        quota_bytes=env.quota_bytes,
        disk=Disk(Path(env.store_dir)) if env.store_dir else None,
    )
    upkeep.continuity = continuity
    return upkeep
