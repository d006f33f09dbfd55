"""The interests of all streams that this process forwards, kept up to date along `system`. Sql
module.

A batch that was read is matched after `current()`: by then every change that was visible before
its last event was appended is in. A stream's versions are read from the tables once, in one
snapshot; after that only what changed is (SUN-11). Only a gap in `system` makes them be read again.
Where a stream is given another strategy, its matcher is made anew beside the old one.
Concurrency contract: one event loop. An interest is replaced as a whole, or changed between two
awaits of its stream's task.
"""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from delivery.forward.interest import Interest
from delivery.forward.leases import SQL, Lease
from delivery.forward.zone import Zone, Zones, zone_of_stream
from eventhub import limits, metrics
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog.database import Connection, reading
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Stored
from eventhub.logs import get_logger
from registrations.catalog import (
    Suspension,
    Version,
    suspensions_of,
    versions_of_barrier,
    versions_of_stream,
)
from registrations.feed import Change, Feed
from registrations.match.index import IndexMatcher, build_frozen
from registrations.match.matching import AUTO, Matching
from registrations.match.work import Labels

log = get_logger(__name__)

_PIECE = 500  # versions taken in without a pause: about 5 ms


class _Piece(NamedTuple):
    """Versions as they are, and the suspensions of their groups."""

    versions: list[Version]
    suspensions: dict[int, tuple[Suspension, ...]]


class _Snapshot(NamedTuple):
    """What a stream's interest is made of."""

    piece: _Piece
    built_through: int  # a sequence of `system`
    strategy: str


class _Kept:
    """One stream's interest, and what came while it was being read from the tables."""

    def __init__(self, interest: Interest, zone: Zone) -> None:
        self.interest = interest
        self.zone = zone
        self.loaded = False
        self.stale = False  # a part of `system` was missed
        self.later: list[_Piece] = []

    def take(self, piece: _Piece) -> None:
        if self.loaded:
            self.interest.take(piece.versions)
            self.interest.suspend(piece.suspensions)
        else:
            self.later.append(piece)


class Interests:
    """The interests of one process. `changed` is called after each change of registrations."""

    def __init__(self, hub_log: Log, feed: Feed, zones: Zones, changed: Callable[[], None]) -> None:
        self._log = hub_log
        self._feed = feed
        self._zones = zones
        self._changed = changed
        self._kept: dict[Lease, _Kept] = {}
        self._barriers: dict[int, None] = {}  # told and not applied, in order
        self._applying = asyncio.Lock()
        self._some = asyncio.Event()
        self._policies = False  # of some stream may be others
        self._labels = Labels()
        feed.listeners.add(self._told)
        feed.policies.add(self._policy)

    async def run(self) -> None:
        """Apply changes also while no event comes, until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await self._apply()
                if self._policies:
                    await self._rebuild()
            except DatabaseUnavailable:
                self._policies = True
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                self._some.set()
            self._changed()

    async def build(self) -> None:
        """Build match indexes that are due, in a thread, until cancelled."""
        while True:
            for lease, kept in list(self._kept.items()):
                index = kept.interest.index
                if kept.loaded and index is not None and index.due():
                    await self._build(lease, kept.interest, index)
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _build(self, lease: Lease, interest: Interest, index: IndexMatcher) -> None:
        """One index of what lives now; what changes meanwhile stays in memory. Mapped, it needs no
        name, and it ends with this process.
        """
        frozen = index.freeze()
        try:
            with tempfile.TemporaryDirectory(prefix="eventhub-index-") as folder:
                built = await asyncio.to_thread(build_frozen, Path(folder), frozen, durable=False)
        except OSError as error:  # a disk that is full costs speed, not matches
            log.warning("index_not_built", stream=lease.stream_id, error=str(error))
            await asyncio.sleep(limits.FORWARD_STREAMS_LOOK_S)
            return
        if interest.index is index:
            index.thaw(frozen, *built)
            metrics.FORWARD_BUILDS.labels(reason="index").inc()
            log.info("index_built", stream=lease.stream_id, registrations=len(interest))

    async def open(self, lease: Lease, passed: int) -> None:
        """Have the interest of a stream that is matched up to a sequence.

        Raises DatabaseUnavailable.
        """
        kept = self._kept.get(lease)
        if kept is None or not kept.loaded or kept.interest.passed > passed:
            await self._load(lease, passed, reason="lease")

    def close(self, lease: Lease) -> None:
        self._kept.pop(lease, None)

    async def current(self, lease: Lease, batch: Sequence[Stored] = ()) -> Interest:
        """The interest with every change in it that was made before this call, for a batch that was
        read: its types and the groups of its audiences are known.

        Raises DatabaseUnavailable.
        """
        await self._feed.confirm()
        if self._barriers:
            await self._apply()
        kept = self._kept[lease]
        if kept.stale:
            await self._load(lease, kept.interest.passed, reason="gap")
        kept = self._kept[lease]
        await kept.zone.learn([stored.event for stored in batch], through=self._feed.told)
        return kept.interest

    def tell_work(self) -> None:
        """Add to the metrics what the matchers have done."""
        for lease, kept in self._kept.items():
            kept.interest.tell_work(self._labels.of(lease.stream_id))

    def _policy(self) -> None:
        self._policies = True
        self._some.set()

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
        for barrier, stream_id, groups in await cursor.fetchall():
            versions = await versions_of_barrier(connection, barrier, stream_id)
            concerned = (*groups, *(version.group for version in versions))
            passed = min(kept.interest.passed for kept in by_stream[stream_id])
            found = await suspensions_of(connection, concerned, stream_id, passed)
            for kept in by_stream[stream_id]:
                kept.take(_Piece(versions, found))

    async def _rebuild(self) -> None:
        """Give streams whose strategy is another one a matcher of it."""
        self._policies = False
        async with reading(self._log.pool) as connection:
            ids = [lease.stream_id for lease in self._kept]
            cursor = await connection.execute(SQL["strategies"], (ids,))
            strategies = dict(await cursor.fetchall())
        for lease, kept in list(self._kept.items()):
            interest, strategy = kept.interest, strategies.get(lease.stream_id)
            if not kept.loaded or strategy in (None, interest.matching.strategy):
                continue
            for _ in interest.rebuild(interest.matching._replace(strategy=strategy)):
                await asyncio.sleep(0)
            metrics.FORWARD_BUILDS.labels(reason="strategy").inc()
            log.info("interest_rebuilt", stream=lease.stream_id, strategy=strategy)

    async def _load(self, lease: Lease, passed: int, *, reason: str) -> None:
        """Read all versions from one snapshot and build the interest aside.

        It is known before the snapshot is taken, so changes behind the snapshot wait in `later`.
        """
        async with reading(self._log.pool) as connection:
            zone = await zone_of_stream(connection, self._zones, lease.stream_id)
        kept = _Kept(Interest(passed, groups_of=zone.groups_of), zone)
        self._kept[lease] = kept
        async with reading(self._log.pool, seconds=limits.FORWARD_LOAD_S_MAX) as connection:
            found = await _snapshot(connection, lease.stream_id, passed)
        matching = Matching(found.strategy, zone.kin)
        kept.interest = Interest(passed, matching, groups_of=zone.groups_of)
        versions = found.piece.versions
        for at in range(0, len(versions), _PIECE):
            kept.interest.take(versions[at : at + _PIECE])
            await asyncio.sleep(0)
        kept.interest.suspend(found.piece.suspensions)
        kept.loaded = True
        for later in kept.later:
            kept.take(later)
        kept.later.clear()
        self._policy()  # it may be another since the snapshot
        metrics.FORWARD_BUILDS.labels(reason=reason).inc()
        log.info(
            "interest_loaded",
            stream=lease.stream_id,
            versions=len(versions),
            built_through=found.built_through,
            strategy=found.strategy,
            reason=reason,
        )


async def _snapshot(connection: Connection, stream_id: int, after: int) -> _Snapshot:
    """A stream's versions that can hold after a sequence, with the head of `system` they belong
    to.
    """
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = await (await connection.execute(SQL["stream_and_system"], (stream_id,))).fetchone()
        versions = await versions_of_stream(connection, stream_id, after)
        groups = (version.group for version in versions)
        suspensions = await suspensions_of(connection, groups, stream_id, after)
        return _Snapshot(_Piece(versions, suspensions), *(row or (0, AUTO)))
