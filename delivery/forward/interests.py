"""The interests of all streams that this process forwards, kept up to date along `system`. Sql
module. SQL module.

A batch that was read is matched after `current()`: by then every change that was visible before
its last event was appended is in. A stream's versions are opened as an index with what changed
since it was built, or are read from the tables, once, in one snapshot; after that only what changed
is (SUN-11). Only a gap in `system` makes them be read again. Where a stream is given another
strategy, its matcher is made anew beside the old one; a newer index is taken as it comes.
Concurrency contract: one event loop. An interest is replaced as a whole, or changed between two
awaits of its stream's task.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from delivery.forward.indexed import Based
from delivery.forward.indexes import DAMAGED, Indexes
from delivery.forward.interest import Interest
from delivery.forward.leases import SQL, Lease
from delivery.forward.loading import Loaded, Piece, load, stand_of
from delivery.forward.metrics import show
from delivery.forward.zone import Zone, Zones, zone_of_stream
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.base.time_slices import run_in_slices
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.catalog import compiled, suspensions_of, versions_of_barriers
from registrations.feed import CatalogChange, Feed
from registrations.match_index.epochs.epoch import Epoch
from registrations.match_index.format.errors import IndexDamaged
from registrations.matching.metrics import Labels
from registrations.matching.stream_matcher import Matching
from registrations.matching.versions import Version

log = get_logger(__name__)

_PIECE = 10  # versions taken in at one step


class _Changes(NamedTuple):
    """What concerns a stream: barriers, and the groups that are suspended or resumed there."""

    barriers: list[int]
    groups: list[int]


class _OfStream(NamedTuple):
    """What concerns one stream."""

    stream_id: int
    changes: _Changes


class _Strategy(NamedTuple):
    """How the registrations of a stream's events are found."""

    id: int
    matching: str


class _Kept:
    """One stream's interest, what came while it was being read from the tables, and the changes
    that are still to be read.
    """

    def __init__(self, interest: Interest, zone: Zone) -> None:
        self.interest = interest
        self.zone = zone
        self.loaded = False
        self.stale = ""  # why it is to be read again, if it is
        self.later: list[Piece] = []
        self.changes: list[_Changes] = []  # in order; the first may be under way
        self.applying = asyncio.Lock()

    @property
    def is_indexed(self) -> bool:
        """Whether it stands on an index, or would if there was one."""
        return self.loaded and not self.stale and self.interest.matching.is_indexed

    async def take(self, piece: Piece) -> None:
        if self.loaded:
            await take(self.interest, piece)
        else:
            self.later.append(piece)


class Interests:
    """The interests of one process. `changed` is called after each change of registrations."""

    def __init__(
        self, hub_log: Log, feed: Feed, zones: Zones, data: Path, changed: Callable[[], None]
    ) -> None:
        self._log = hub_log
        self._indexes = Indexes(data)
        self._making = asyncio.Lock()  # one matcher beside another at a time
        self._feed = feed
        self._zones = zones
        self._changed = changed
        self._kept: dict[Lease, _Kept] = {}
        self._barriers: dict[int, None] = {}  # told, and whom they concern is not known, in order
        self._sorting = asyncio.Lock()
        self._some = asyncio.Event()
        self._policies = False  # of some stream may be others
        self._labels = Labels()
        self._shown: frozenset[str] = frozenset()  # labels of streams
        feed.listeners.add(self._told)
        feed.policy_listeners.add(self._policy)

    async def run(self) -> None:
        """Apply changes also while no event comes, until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await self._sort()
                for lease, kept in list(self._kept.items()):
                    with suppress(IndexDamaged):  # the stream's task will see it too
                        await self._apply(lease.stream_id, kept)
                if self._policies:
                    await self._rebuild()
            except DatabaseUnavailable:
                self._policies = True
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                self._some.set()
            self._changed()

    async def follow_indexes(self) -> None:
        """Take newer indexes of streams as they come, until cancelled."""
        while True:
            await self.take_indexes()
            kept = bool(self._kept)
            await asyncio.sleep(
                limits.INDEX_CHECK_INTERVAL_S if kept else limits.INDEX_IDLE_INTERVAL_S
            )

    async def take_indexes(self) -> None:
        """Those that came since the last look."""
        indexed = {lease: kept for lease, kept in self._kept.items() if kept.is_indexed}
        newer = await self._indexes.newer([lease.stream_id for lease in indexed])
        for lease, kept in indexed.items():
            if lease.stream_id in newer and kept.is_indexed:
                try:
                    await self._swap(lease, kept)
                except DatabaseUnavailable:
                    self._indexes.look_again(lease.stream_id)

    async def open(self, lease: Lease, passed: int) -> None:
        """Have the interest of a stream that is matched up to a sequence.

        Raises DatabaseUnavailable.
        """
        kept = self._kept.get(lease)
        if kept is not None and kept.interest.damaged and kept.interest.based is not None:
            self._indexes.refuse(lease.stream_id, kept.interest.based.epoch, DAMAGED)
            await self._load(lease, passed, reason=DAMAGED)
        elif kept is None or not kept.loaded or kept.interest.passed > passed:
            await self._load(lease, passed, reason="lease")

    def close(self, lease: Lease) -> None:
        self._indexes.forget(lease.stream_id)
        self._kept.pop(lease, None)

    async def current(self, lease: Lease, batch: Sequence[StoredEvent] = ()) -> Interest:
        """The interest with every change in it that was made before this call, for a batch that was
        read: its types and the groups of its audiences are known.

        Raises DatabaseUnavailable.
        """
        await self._feed.confirm()
        if self._barriers:
            await self._sort()
        kept = self._kept[lease]
        if kept.stale:
            await self._load(lease, kept.interest.passed, reason=kept.stale)
        else:
            await self._apply(lease.stream_id, kept)
        kept = self._kept[lease]
        await kept.zone.learn([stored.event for stored in batch], through=self._feed.applied)
        return kept.interest

    def tell_work(self) -> None:
        """Add to the metrics what the matchers have done."""
        by_label: dict[str, list[Interest]] = {}
        for lease, kept in self._kept.items():
            by_label.setdefault(self._labels.of(lease.stream_id), []).append(kept.interest)
        self._shown = show(by_label, self._shown)

    def _policy(self) -> None:
        self._policies = True
        self._some.set()

    def _told(self, change: CatalogChange | None) -> None:
        if change is None:
            for kept in self._kept.values():
                kept.stale = "gap"
        else:
            self._barriers[change.barrier] = None
        self._some.set()

    async def _sort(self) -> None:
        """Give each stream what was told so far that concerns it; who comes second waits for the
        first.
        """
        async with self._sorting:
            while self._barriers:
                barriers = list(self._barriers)[: limits.FORWARD_BARRIERS_MAX]
                by_stream: dict[int, list[_Kept]] = {}  # later ones have it in their snapshots
                for lease, kept in self._kept.items():
                    by_stream.setdefault(lease.stream_id, []).append(kept)
                values = {"barriers": barriers, "streams": list(by_stream)}
                kept_s = {"kept_s": limits.VERSIONS_RETAINED_S / 2}
                async with reading(self._log.pool) as connection:
                    flag = scalars(connection)
                    await flag.execute(SQL["may_be_purged"], {**values, **kept_s})
                    is_late = await flag.fetchone()
                    rows = cursor_of(connection, _OfStream)
                    found = await (
                        await rows.execute(SQL["streams_of_barriers"], values)
                    ).fetchall()
                if is_late:  # this process was stopped for long
                    self._told(None)
                for one in found:
                    for kept in by_stream[one.stream_id]:
                        kept.changes.append(one.changes)
                for barrier in barriers:
                    del self._barriers[barrier]

    async def _apply(self, stream_id: int, kept: _Kept) -> None:
        """What concerns a stream, in order; others do not wait while its filters are compiled."""
        async with kept.applying:
            while kept.changes:
                barriers, groups = kept.changes[0]
                async with reading(self._log.pool) as connection:
                    written = await versions_of_barriers(connection, barriers, stream_id)
                    concerned = (*groups, *(one.group for one in written))
                    passed = kept.interest.passed
                    found = await suspensions_of(connection, concerned, stream_id, passed)
                await kept.take(Piece(await compiled(written), found))
                del kept.changes[0]

    async def _rebuild(self) -> None:
        """Give streams whose strategy is another one a matcher of it."""
        self._policies = False
        async with reading(self._log.pool) as connection:
            ids = [lease.stream_id for lease in self._kept]
            rows = await cursor_of(connection, _Strategy).execute(SQL["strategies"], (ids,))
            strategies = {row.id: row.matching for row in await rows.fetchall()}
        for lease, kept in list(self._kept.items()):
            interest, strategy = kept.interest, strategies.get(lease.stream_id)
            if not kept.loaded or strategy in (None, interest.matching.strategy):
                continue
            await self._restyle(kept, interest.matching._replace(strategy=strategy))
            self._indexes.look_again(lease.stream_id)
            log.info("interest_rebuilt", stream=lease.stream_id, strategy=strategy)

    async def _restyle(self, kept: _Kept, matching: Matching) -> None:
        """What is in an index is in no memory, so it is read again for a strategy without one."""
        async with self._making:
            if kept.interest.based is not None and not matching.is_indexed:
                kept.stale = "strategy"
                return
            for _ in kept.interest.rebuild(matching):
                await asyncio.sleep(0)
        metrics.FORWARD_BUILDS.labels(reason="strategy").inc()

    async def _swap(self, lease: Lease, kept: _Kept) -> None:
        """Take a stream's newer index. What it does not have stays in memory; what changes
        meanwhile is in both, or in the memory alone. Raises DatabaseUnavailable.
        """
        interest, stream_id = kept.interest, lease.stream_id
        epoch = await self._indexes.open(stream_id)
        present = None if interest.based is None else interest.based.epoch
        if epoch is None or (present is not None and present.manifest == epoch.manifest):
            return
        async with self._making:
            interest.watch()
            try:
                await self._stand_on(lease, kept, epoch)
            except IndexDamaged:
                self._indexes.refuse(stream_id, epoch, DAMAGED)
            finally:
                interest.unwatch()

    async def _stand_on(self, lease: Lease, kept: _Kept, epoch: Epoch) -> None:
        """The interest is watched: what changes from here on is not lost, whatever is read when."""
        interest, stream_id = kept.interest, lease.stream_id
        present = None if interest.based is None else interest.based.epoch
        async with reading(self._log.pool) as connection:
            stand = await stand_of(connection, stream_id, interest.passed, epoch, present)
        if stand.refused:
            self._indexes.refuse(stream_id, epoch, stand.refused)
        if not stand.is_usable:
            return
        based = await asyncio.to_thread(Based, epoch, stand.names, kept.zone.hierarchy)
        for _ in interest.swap(based, stand.ended):
            await asyncio.sleep(0)
        _took(lease, epoch, "swapped", interest)

    async def _load(self, lease: Lease, passed: int, *, reason: str) -> None:
        """Open the index or read all versions, with the rest from one snapshot, and build the
        interest aside.

        It is known before the snapshot is taken, so changes behind the snapshot wait in `later`.
        """
        stream_id = lease.stream_id
        async with reading(self._log.pool) as connection:
            zone = await zone_of_stream(connection, self._zones, stream_id)
        kept = _Kept(Interest(passed, groups_of=zone.groups_of), zone)
        self._kept[lease] = kept
        has_none = stream_id == SYSTEM_STREAM_ID
        epoch = None if has_none else await self._indexes.open(stream_id)
        async with reading(self._log.pool, seconds=limits.FORWARD_LOAD_S_MAX) as connection:
            found = await load(connection, stream_id, passed, epoch)
        count = len(found.written)
        try:
            kept.interest = await self._made(passed, found, zone, epoch)
            while kept.later:
                await take(kept.interest, kept.later.pop(0))
        except IndexDamaged:
            if epoch is not None:
                self._indexes.refuse(stream_id, epoch, DAMAGED)
            raise
        kept.loaded = True
        self._policy()  # it may be another since the snapshot
        metrics.FORWARD_BUILDS.labels(reason=reason).inc()
        if epoch is not None and found.stand.refused:
            self._indexes.refuse(stream_id, epoch, found.stand.refused)
        if epoch is not None and found.stand.is_usable:
            _took(lease, epoch, "opened", kept.interest)
        log.info(
            "interest_loaded",
            stream=stream_id,
            versions=count,
            built_through=found.stand.moment.system,
            strategy=found.stand.moment.strategy,
            reason=reason,
        )

    async def _made(self, passed: int, found: Loaded, zone: Zone, epoch: Epoch | None) -> Interest:
        stand, written, suspensions = found
        matching = Matching(stand.moment.strategy, zone.hierarchy)
        interest = Interest(passed, matching, groups_of=zone.groups_of)
        if epoch is not None and stand.is_usable:
            interest.based = await asyncio.to_thread(Based, epoch, stand.names, zone.hierarchy)
        await take(interest, Piece(await compiled(written), suspensions))
        return interest


async def take(interest: Interest, piece: Piece) -> None:
    """In turns of the event loop. Of what a stream has at hand, which was read before such changes
    were told, nothing depends on them, so it may be matched meanwhile.
    """
    await run_in_slices(_steps(interest, piece.versions))
    interest.suspend(piece.suspensions)


def _steps(interest: Interest, versions: list[Version]) -> Iterator[None]:
    for at in range(0, len(versions), _PIECE):
        interest.take(versions[at : at + _PIECE])
        yield


def _took(lease: Lease, epoch: Epoch, how: str, interest: Interest) -> None:
    """Tell of it."""
    metrics.INDEX_OPENED.labels(how=how).inc()
    log.info(
        "index_taken",
        how=how,
        stream=lease.stream_id,
        epoch=epoch.manifest.epoch,
        registrations=len(epoch.base),
        in_memory=interest.sizes.delta,
    )
