"""One forwarder: takes leases, runs a task per stream, expands fan-outs, fires timers, and creates
partitions ahead of need. SQL module.

It runs until stopped, through outages of the database; Redis is not needed.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg_pool import AsyncConnectionPool

from delivery.forward.lag import Lag, StreamLag
from delivery.forward.lease_holder import LeaseHolder
from delivery.forward.leases import REST_S, STREAMS, Lease, Leases, add_streams, known_streams
from delivery.forward.plan import DeliveryBatch
from delivery.forward.stream import ForwarderContext, StreamForwarder, stream_leases
from delivery.forward.stream_matchers import StreamMatchers
from delivery.forward.wake_up import WakeUps
from delivery.forward.write import expand, writing_pool
from delivery.forward.zone import ZoneCaches
from delivery.partitions.create import create_partitions
from delivery.patterns.group_tables import GROUPS
from delivery.patterns.memory import GroupMemory
from delivery.patterns.output_space import OutputSpace
from delivery.patterns.process import LeasedGroups
from delivery.patterns.running_group import PatternContext
from delivery.patterns.turns import GroupTurns
from eventhub.access.client_groups import Groups
from eventhub.base import limits, metrics
from eventhub.base.clock import SystemClock
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.event_loop import pause_together_s, run_forever, wait_until_set
from eventhub.base.garbage import freeze_loaded
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import ReadsArchive
from eventhub.monitoring.heartbeat import HubMember, membership
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, reading
from eventhub.types.registry import TypeRegistry
from registrations.catalog import oldest_transaction, streams_with_callbacks
from registrations.feed import Feed
from registrations.timers.firing import TimerFiring

log = get_logger(__name__)
throttled = ThrottledLog(log)

_POSTPONED = (psycopg.Error, EventHubError, *CONNECTION_ERRORS)


class ForwarderSettings(NamedTuple):
    """The settings of a forwarder."""

    database_url: str
    direct_url: str  # of the database itself if the other is a pooler's, else ""
    archive: ReadsArchive | None
    data: Path  # the folder with the match indexes
    mark_url: str = ""  # storage of the log's mark
    store_dir: str = ""  # a folder on the disk of the database, if it is watched
    quota_bytes: int | None = None  # of the hub


async def forward(settings: ForwarderSettings, *, stop: asyncio.Event) -> None:
    """Forward until `stop` is set; then release every lease at once."""
    freeze_loaded()
    sys.setswitchinterval(limits.FORWARD_THREAD_SWITCH_S)
    async with (
        Log.open(
            database_url=settings.database_url,
            direct_url=settings.direct_url,
            archive=settings.archive,
            mark_url=settings.mark_url,
        ) as hub_log,
        writing_pool(settings.database_url) as pool,
        writing_pool(settings.database_url) as pattern_pool,
        membership("forwarder", settings.database_url) as member,
    ):
        url = settings.direct_url or settings.database_url
        forwarder = ForwarderProcess(hub_log, url, settings.data, member)
        clock = SystemClock()
        context = ForwarderContext(
            hub_log,
            pool,
            Leases(clock, STREAMS),
            forwarder.interests,
            clock,
            forwarder.wrote,
            forwarder.wake_ups.take,
        )
        space = OutputSpace(settings.store_dir, settings.quota_bytes, clock)
        await forwarder.run(context, forwarder.patterns(context, pattern_pool, space), stop)


class ForwarderProcess:
    """The tasks of one process, in addition to those of its streams."""

    def __init__(self, hub_log: Log, url: str, data: Path, member: HubMember) -> None:
        self._feed = Feed(hub_log)
        self._zones = ZoneCaches(TypeRegistry(hub_log), Groups(hub_log))
        self._streams_changed = asyncio.Event()
        changed = self._streams_changed.set
        self.interests = StreamMatchers(hub_log, self._feed, self._zones, data, changed)
        self._url = url
        self._member = member
        self.wake_ups = WakeUps()
        self._fanout_written = asyncio.Event()

    def patterns(
        self,
        context: ForwarderContext,
        pool: AsyncConnectionPool[Connection],
        space: OutputSpace,
    ) -> LeasedGroups:
        """Return the pattern groups of this process; they write through a pool of their own."""
        leases = Leases(context.clock, GROUPS, context.leases.owner)
        found = PatternContext(
            log=context.log,
            pool=pool,
            leases=leases,
            feed=self._feed,
            zones=self._zones,
            clock=context.clock,
            turns=GroupTurns(),
            memory=GroupMemory(),
            space=space,
        )
        return LeasedGroups(found, self._url)

    async def run(
        self, context: ForwarderContext, patterns: LeasedGroups, stop: asyncio.Event
    ) -> None:
        """Run until `stop` is set."""
        holder = stream_leases(context, self._url)
        holder.beat = self._member.beat
        tasks_by_name: dict[str, Callable[[], Awaitable[None]]] = {
            "feed": self._feed.run,
            "types": self._zones.types.run,
            "groups": self._zones.groups.run,
            "interests": self.interests.run,
            "indexes": self.interests.follow_indexes,
            "notices": partial(self.wake_ups.run, context.pool),
            "timers": TimerFiring(self._url, context.clock).run,
            "forward": partial(self._forward, context, holder, patterns),
        }
        tasks = [
            asyncio.create_task(run_forever(name, work)) for name, work in tasks_by_name.items()
        ]
        await stop.wait()
        tasks[-1].cancel()  # takes no stream from here on
        await asyncio.wait(tasks[-1:])
        await asyncio.gather(holder.stop(), patterns.stop())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        log.info("forwarder_stopped")

    def wrote(self, batch: DeliveryBatch, notified: bool) -> None:
        """Count what was written, and wake its readers unless they were notified."""
        if batch.fanout:
            metrics.FANOUTS.inc()
            self._fanout_written.set()
        else:
            metrics.DELIVERIES.inc(len(batch.rows))
            if not notified:
                self.wake_ups.request()

    async def _forward(
        self,
        context: ForwarderContext,
        holder: LeaseHolder[Lease, StreamForwarder],
        patterns: LeasedGroups,
    ) -> None:
        """Forward once the partitions exist and `system` is being followed."""
        await self._first_partitions(context)
        await self._confirm_feed()
        log.info("forwarder_ready", forwarder=str(context.leases.owner))
        async with asyncio.TaskGroup() as group:
            for name, work in (
                ("leases", holder.run),
                ("streams", partial(self._find_streams, context, holder)),
                ("fanouts", partial(self._expand, context)),
                ("partitions", partial(self._partitions, context)),
                ("lag", partial(_report_lag, holder, context)),
                ("patterns", patterns.run),
                ("pattern lag", patterns.report),
            ):
                group.create_task(run_forever(name, work))

    async def _confirm_feed(self) -> None:
        while True:
            try:
                return await self._feed.confirm()
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _first_partitions(self, context: ForwarderContext) -> None:
        while True:
            try:
                async with reading(context.pool) as connection:
                    if await create_partitions(connection):
                        return
            except _POSTPONED as error:
                throttled.info("partitions_postponed", reason=type(error).__name__)
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _partitions(self, context: ForwarderContext) -> None:
        while True:
            idle = not context.leases.share.total
            pause_s = limits.PARTITIONS_IDLE_INTERVAL_S if idle else limits.PARTITIONS_INTERVAL_S
            await asyncio.sleep(pause_together_s(pause_s))
            await self._first_partitions(context)

    async def _find_streams(
        self, context: ForwarderContext, holder: LeaseHolder[Lease, StreamForwarder]
    ) -> None:
        """Insert rows for streams that got their first callback: after every change, and after the
        first search only among what changed since.
        """
        checked_since: str | None = None
        while True:
            self._streams_changed.clear()
            try:
                async with reading(context.pool) as connection:
                    oldest = await oldest_transaction(connection)
                    known = await known_streams(connection)
                    found = await streams_with_callbacks(connection, known, checked_since)
                    if found:
                        await add_streams(connection, found)
                    if found or (known and not context.leases.share.total):
                        holder.wake()
                    checked_since = oldest
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                continue
            idle = not (known or found)
            pause_s = REST_S if idle else limits.FORWARD_STREAMS_CHECK_S
            await wait_until_set(self._streams_changed, pause_together_s(pause_s))

    async def _expand(self, context: ForwarderContext) -> None:
        """Expand fan-outs in batches, those of this process and those that others left."""
        while True:
            self._fanout_written.clear()
            written = 0
            try:
                async with reading(context.pool) as connection:
                    written = await expand(connection)
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            if written:
                metrics.DELIVERIES.inc(written)
                self.wake_ups.request()
                continue
            idle = not context.leases.share.total
            pause_s = limits.FORWARD_STREAMS_CHECK_S if idle else limits.FANOUT_CHECK_INTERVAL_S
            await wait_until_set(self._fanout_written, pause_together_s(pause_s))


async def _report_lag(
    holder: LeaseHolder[Lease, StreamForwarder], context: ForwarderContext
) -> None:
    """Report the lag of the streams and the work of matching."""
    lag = Lag()
    while True:
        lag.update(
            [
                StreamLag(lease.stream_id, stream.lag_events, stream.lag_since_us)
                for lease, stream in holder.works.items()
            ],
            context.clock.now_us(),
        )
        context.interests.report_work()
        idle = not context.leases.share.total
        pause_s = limits.FORWARD_IDLE_INTERVAL_S if idle else limits.HEAD_POLL_INTERVAL_S
        await asyncio.sleep(pause_together_s(pause_s))
