"""One forwarder: takes leases, runs a task per stream, writes fan-outs in pieces, and keeps the
partitions. SQL module.

It runs until told to stop, through every absence of the database; Redis is not needed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg

from delivery.forward.holder import Holder
from delivery.forward.interests import Interests
from delivery.forward.lag import Lag, StreamLag
from delivery.forward.leases import Leases, add_streams, known_streams
from delivery.forward.plan import Piece
from delivery.forward.stream import Parts
from delivery.forward.wake_up import Notices
from delivery.forward.write import expand, writing_pool
from delivery.forward.zone import Zones
from delivery.partitions.create import make_partitions
from eventhub.access.client_groups import Groups
from eventhub.base import limits, metrics
from eventhub.base.background import run_forever
from eventhub.base.clock import SystemClock
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.waiting import set_within
from eventhub.eventlog.log import Log, ReadsArchive
from eventhub.postgresql.connections import AWAY, reading
from eventhub.types.registry import TypeRegistry
from registrations.catalog import oldest_transaction, streams_with_callbacks
from registrations.feed import Feed

log = get_logger(__name__)
throttled = ThrottledLog(log)

_POSTPONED = (psycopg.Error, EventHubError, *AWAY)


class Where(NamedTuple):
    """Where a forwarder finds what it works on."""

    database_url: str
    direct_url: str  # of the database itself, where the other is a pooler's; else ""
    archive: ReadsArchive | None
    data: Path  # the folder that has the match indexes
    mark_url: str = ""  # where the log's mark is kept


async def forward(where: Where, *, stop: asyncio.Event) -> None:
    """Forward until `stop` is set; then every lease is free at once."""
    async with (
        Log.open(
            database_url=where.database_url,
            direct_url=where.direct_url,
            archive=where.archive,
            mark_url=where.mark_url,
        ) as hub_log,
        writing_pool(where.database_url) as pool,
    ):
        url = where.direct_url or where.database_url
        forwarder = Forwarder(hub_log, url, where.data)
        clock = SystemClock()
        parts = Parts(hub_log, pool, Leases(clock), forwarder.interests, clock, forwarder.wrote)
        await forwarder.run(parts, stop)


class Forwarder:
    """The tasks of one process beside its streams."""

    def __init__(self, hub_log: Log, url: str, data: Path) -> None:
        self._feed = Feed(hub_log)
        self._zones = Zones(TypeRegistry(hub_log), Groups(hub_log))
        self.interests = Interests(hub_log, self._feed, self._zones, data, self._look_now)
        self._url = url
        self._notices = Notices()
        self._look = asyncio.Event()
        self._fanned = asyncio.Event()

    async def run(self, parts: Parts, stop: asyncio.Event) -> None:
        """Until `stop` is set."""
        holder = Holder(parts, self._url)
        beside: dict[str, Callable[[], Awaitable[None]]] = {
            "feed": self._feed.run,
            "types": self._zones.types.run,
            "groups": self._zones.groups.run,
            "interests": self.interests.run,
            "indexes": self.interests.follow_indexes,
            "notices": partial(self._notices.run, parts.pool),
            "forward": partial(self._forward, parts, holder),
        }
        tasks = [asyncio.create_task(run_forever(name, work)) for name, work in beside.items()]
        await stop.wait()
        tasks[-1].cancel()  # no stream is taken any more
        await asyncio.wait(tasks[-1:])
        await holder.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        log.info("forwarder_stopped")

    def wrote(self, piece: Piece) -> None:
        """Deliveries, or a fan-out, are there."""
        if piece.fanout:
            metrics.FANOUTS.inc()
            self._fanned.set()
        else:
            metrics.DELIVERIES.inc(len(piece.rows))
            self._notices.wrote()

    def _look_now(self) -> None:
        self._look.set()

    async def _forward(self, parts: Parts, holder: Holder) -> None:
        """Nothing is written before the partitions are there, and no stream is taken before
        `system` is followed.
        """
        await self._first_partitions(parts)
        await self._followed()
        log.info("forwarder_ready", forwarder=str(parts.leases.owner))
        async with asyncio.TaskGroup() as group:
            for name, work in (
                ("leases", holder.run),
                ("streams", partial(self._find_streams, parts, holder)),
                ("fanouts", partial(self._expand, parts)),
                ("partitions", partial(self._partitions, parts)),
                ("lag", partial(_show, holder, parts)),
            ):
                group.create_task(run_forever(name, work))

    async def _followed(self) -> None:
        while True:
            try:
                return await self._feed.confirm()
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _first_partitions(self, parts: Parts) -> None:
        while True:
            try:
                async with reading(parts.pool) as connection:
                    if await make_partitions(connection):
                        return
            except _POSTPONED as error:
                throttled.info("partitions_postponed", reason=type(error).__name__)
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _partitions(self, parts: Parts) -> None:
        while True:
            idle = not parts.leases.share.streams
            pause_s = limits.PARTITIONS_IDLE_INTERVAL_S if idle else limits.PARTITIONS_INTERVAL_S
            await asyncio.sleep(pause_s)
            await self._first_partitions(parts)

    async def _find_streams(self, parts: Parts, holder: Holder) -> None:
        """Rows for streams that got their first callback; looked for after every change, and after
        the first look in what changed since.
        """
        looked: str | None = None
        while True:
            self._look.clear()
            try:
                async with reading(parts.pool) as connection:
                    oldest = await oldest_transaction(connection)
                    known = await known_streams(connection)
                    found = await streams_with_callbacks(connection, known, looked)
                    if found:
                        await add_streams(connection, found)
                    if found or (known and not parts.leases.share.streams):
                        holder.look()
                    looked = oldest
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                continue
            await set_within(self._look, limits.FORWARD_STREAMS_CHECK_S)

    async def _expand(self, parts: Parts) -> None:
        """Write fan-outs in pieces, this process' and those that others left."""
        while True:
            self._fanned.clear()
            written = 0
            try:
                async with reading(parts.pool) as connection:
                    written = await expand(connection)
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            if written:
                metrics.DELIVERIES.inc(written)
                self._notices.wrote()
                continue
            idle = not parts.leases.share.streams
            pause_s = limits.FORWARD_STREAMS_CHECK_S if idle else limits.FANOUT_CHECK_INTERVAL_S
            await set_within(self._fanned, pause_s)


async def _show(holder: Holder, parts: Parts) -> None:
    """How far behind the streams are, and what matching takes."""
    lag = Lag()
    while True:
        lag.show(
            [
                StreamLag(lease.stream_id, stream.lag_events, stream.lag_since_us)
                for lease, stream in holder.streams.items()
            ],
            parts.clock.now_us(),
        )
        parts.interests.tell_work()
        idle = not parts.leases.share.streams
        await asyncio.sleep(limits.FORWARD_IDLE_INTERVAL_S if idle else limits.HEAD_POLL_INTERVAL_S)
