"""The interests of all streams that this process forwards, kept up to date along `system`. Sql
module.

A batch that was read is matched after `current()`: by then every change that was visible before
its last event was appended is in. A stream's versions are read from the tables once, in one
snapshot; after that only what changed is (SUN-11). Only a gap in `system` makes them be read again.
Concurrency contract: one event loop. An interest is replaced as a whole, or changed between two
awaits of its stream's task.
"""

import asyncio
from collections.abc import Callable

from delivery.forward.interest import Interest
from delivery.forward.leases import SQL, Lease
from eventhub import limits, metrics
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog.database import Connection, reading
from eventhub.eventlog.log import Log
from eventhub.logs import get_logger
from registrations.catalog import Version, versions_of_barrier, versions_of_stream
from registrations.feed import Change, Feed

log = get_logger(__name__)

_PIECE = 500  # versions taken in without a pause: about 5 ms


class _Kept:
    """One stream's interest, and what came while it was being read from the tables."""

    def __init__(self, interest: Interest) -> None:
        self.interest = interest
        self.loaded = False
        self.stale = False  # a part of `system` was missed
        self.later: list[list[Version]] = []

    def take(self, versions: list[Version]) -> None:
        if self.loaded:
            self.interest.take(versions)
        else:
            self.later.append(versions)


class Interests:
    """The interests of one process. `changed` is called after each change of registrations."""

    def __init__(self, hub_log: Log, feed: Feed, changed: Callable[[], None]) -> None:
        self._log = hub_log
        self._feed = feed
        self._changed = changed
        self._kept: dict[Lease, _Kept] = {}
        self._barriers: dict[int, None] = {}  # told and not applied, in order
        self._applying = asyncio.Lock()
        self._some = asyncio.Event()
        feed.listeners.add(self._told)

    async def run(self) -> None:
        """Apply changes also while no event comes, until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await self._apply()
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                self._some.set()
            self._changed()

    async def open(self, lease: Lease, passed: int) -> None:
        """Have the interest of a stream that is matched up to a sequence.

        Raises DatabaseUnavailable.
        """
        kept = self._kept.get(lease)
        if kept is None or not kept.loaded or kept.interest.passed > passed:
            await self._load(lease, passed, reason="lease")

    def close(self, lease: Lease) -> None:
        self._kept.pop(lease, None)

    async def current(self, lease: Lease) -> Interest:
        """The interest with every change in it that was made before this call.

        Raises DatabaseUnavailable.
        """
        await self._feed.confirm()
        if self._barriers:
            await self._apply()
        kept = self._kept[lease]
        if kept.stale:
            await self._load(lease, kept.interest.passed, reason="gap")
        return self._kept[lease].interest

    def _told(self, change: Change | None) -> None:
        if change is None:
            for kept in self._kept.values():
                kept.stale = True
        else:
            self._barriers[change.barrier] = None
        self._some.set()

    async def _apply(self) -> None:
        """Everything that was told so far; who comes second waits for the first."""
        async with self._applying:
            while self._barriers:
                barriers = list(self._barriers)[: limits.READ_EVENTS_MAX]
                async with reading(self._log.pool) as connection:
                    await self._apply_some(connection, barriers)
                for barrier in barriers:
                    del self._barriers[barrier]

    async def _apply_some(self, connection: Connection, barriers: list[int]) -> None:
        by_stream: dict[int, list[_Kept]] = {}  # later ones have the changes in their snapshots
        for lease, kept in self._kept.items():
            by_stream.setdefault(lease.stream_id, []).append(kept)
        values = {"barriers": barriers, "streams": list(by_stream)}
        cursor = await connection.execute(SQL["streams_of_barriers"], values)
        for barrier, stream_id in await cursor.fetchall():
            versions = await versions_of_barrier(connection, barrier, stream_id)
            for kept in by_stream[stream_id]:
                kept.take(versions)

    async def _load(self, lease: Lease, passed: int, *, reason: str) -> None:
        """Read all versions from one snapshot and build the interest aside.

        It is known before the snapshot is taken, so changes behind the snapshot wait in `later`.
        """
        kept = _Kept(Interest(passed))
        self._kept[lease] = kept
        async with reading(self._log.pool, seconds=limits.FORWARD_LOAD_S_MAX) as connection:
            versions, built_through = await _snapshot(connection, lease.stream_id, passed)
        for at in range(0, len(versions), _PIECE):
            kept.interest.take(versions[at : at + _PIECE])
            await asyncio.sleep(0)
        for later in kept.later:
            kept.interest.take(later)
        kept.later.clear()
        kept.loaded = True
        metrics.FORWARD_BUILDS.labels(reason=reason).inc()
        log.info(
            "interest_loaded",
            stream=lease.stream_id,
            versions=len(versions),
            built_through=built_through,
            reason=reason,
        )


async def _snapshot(
    connection: Connection, stream_id: int, after: int
) -> tuple[list[Version], int]:
    """A stream's versions that can hold after a sequence, and the head of `system` they belong
    to.
    """
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = await (await connection.execute(SQL["head_of_system"])).fetchone()
        return await versions_of_stream(connection, stream_id, after), int(row[0]) if row else 0
