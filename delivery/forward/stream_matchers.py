"""The callback interests of all streams that this process forwards, kept current by following
`system`. SQL module.

A batch is matched after `current()`, which applies every change that was visible before the batch's
last event was appended. The versions of a stream are read once: as an index with the changes since
it was built, or from the tables, in one snapshot. After that only changes are read (SUN-11); a gap
in `system` makes them be read again. If the strategy of a stream changes, its new matcher is built
while the old one stays in use; a newer index is taken when it appears. Concurrency contract: one
event loop. An interest is replaced as a whole, or changed between two awaits of its stream's task.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from delivery.forward.indexed import IndexedVersions
from delivery.forward.indexes import DAMAGED, MatchIndexes
from delivery.forward.leases import SQL, Lease
from delivery.forward.loading import LoadedInterest, VersionChanges, check_epoch, load
from delivery.forward.metrics import Reported, update_metrics
from delivery.forward.order_keys import OrderKeys
from delivery.forward.stream_matcher import CallbackMatcher
from delivery.forward.zone import ZoneCaches, ZoneView, zone_of_stream
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import run_in_slices
from eventhub.base.logs import get_logger
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import fetch_all, fetch_value
from registrations.catalog import compiled, suspensions_of, versions_of_barriers
from registrations.feed import CatalogChange, Feed
from registrations.match_index.epochs.epoch import Epoch
from registrations.match_index.format.errors import IndexDamaged
from registrations.matching.metrics import StreamLabels
from registrations.matching.strategies import StreamStrategy
from registrations.matching.versions import StreamVersion

log = get_logger(__name__)

_STEP_VERSIONS = 10  # versions added in one step


class _BarrierChanges(NamedTuple):
    """The barriers that concern a stream, and the groups that are suspended or resumed there."""

    barriers: list[int]
    groups: list[int]


class _StreamChanges(NamedTuple):
    """The changes that concern one stream."""

    stream_id: int
    changes: _BarrierChanges


class _StreamStrategy(NamedTuple):
    """The matching strategy of a stream."""

    id: int
    matching: str


class _StreamEntry:
    """The interest of one stream, with changes received during its load and changes to be read."""

    def __init__(self, interest: CallbackMatcher, zone: ZoneView) -> None:
        self.interest = interest
        self.zone = zone
        self.loaded = False
        self.stale = ""  # why it has to be loaded again, or ""
        self.deferred: list[VersionChanges] = []
        self.changes: list[_BarrierChanges] = []  # in order; the first may be in progress
        self.applying = asyncio.Lock()

    @property
    def is_indexed(self) -> bool:
        """Whether the interest uses a match index, or would if there was one."""
        return self.loaded and not self.stale and self.interest.matching.is_indexed

    async def take(self, changes: VersionChanges) -> None:
        if self.loaded:
            await take(self.interest, changes)
        else:
            self.deferred.append(changes)


class StreamMatchers:
    """The interests of one process. `changed` is called after each change of registrations."""

    def __init__(
        self, hub_log: Log, feed: Feed, zones: ZoneCaches, data: Path, changed: Callable[[], None]
    ) -> None:
        self._log = hub_log
        self._indexes = MatchIndexes(data)
        self._building = asyncio.Lock()  # at most one second matcher is built at a time
        self._feed = feed
        self.order_keys = OrderKeys(feed)
        self._zones = zones
        self._changed = changed
        self._entries: dict[Lease, _StreamEntry] = {}
        self._barriers: dict[int, None] = {}  # announced in order, not yet assigned to streams
        self._assigning = asyncio.Lock()
        self._pending = asyncio.Event()
        self._policies_changed = False  # the strategy of some stream may have changed
        self._labels = StreamLabels()
        self._reported: dict[str, list[Reported]] = {}  # by the label of streams
        feed.listeners.add(self._on_change)
        feed.policy_listeners.add(self._on_policy_change)

    async def run(self) -> None:
        """Apply changes, also while no event arrives, until cancelled."""
        while True:
            await self._pending.wait()
            self._pending.clear()
            try:
                await self._assign_changes()
                for lease, entry in list(self._entries.items()):
                    with suppress(IndexDamaged):  # the stream's task handles it
                        await self._apply(lease.stream_id, entry)
                if self._policies_changed:
                    await self._rebuild()
            except DatabaseUnavailable:
                self._policies_changed = True
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                self._pending.set()
            self._changed()

    async def follow_indexes(self) -> None:
        """Take newer indexes of streams as they appear, until cancelled."""
        while True:
            await self.take_indexes()
            entry = bool(self._entries)
            await asyncio.sleep(
                limits.INDEX_CHECK_INTERVAL_S if entry else limits.INDEX_IDLE_INTERVAL_S
            )

    async def take_indexes(self) -> None:
        """Take the indexes that appeared since the last call."""
        indexed = {lease: entry for lease, entry in self._entries.items() if entry.is_indexed}
        newer = await self._indexes.newer([lease.stream_id for lease in indexed])
        for lease, entry in indexed.items():
            if lease.stream_id in newer and entry.is_indexed:
                try:
                    await self._swap(lease, entry)
                except DatabaseUnavailable:
                    self._indexes.retry(lease.stream_id)

    async def open(self, lease: Lease, passed: int) -> None:
        """Load the interest of a stream matched up to a sequence. Raises DatabaseUnavailable."""
        entry = self._entries.get(lease)
        if entry is not None and entry.interest.damaged and entry.interest.indexed is not None:
            self._indexes.refuse(lease.stream_id, entry.interest.indexed.epoch, DAMAGED)
            await self._load(lease, passed, reason=DAMAGED)
        elif entry is None or not entry.loaded or entry.interest.passed > passed:
            await self._load(lease, passed, reason="lease")

    def close(self, lease: Lease) -> None:
        self._indexes.forget(lease.stream_id)
        self._entries.pop(lease, None)

    async def current(
        self, lease: Lease, batch: Sequence[StoredEvent] = (), system: int | None = None
    ) -> CallbackMatcher:
        """Return the interest with every change made before this call, for a batch that was read:
        the types of its events and the groups of its audiences are known. `system`: a head of
        `system` with every change made before the batch was appended, if it is known. Raise
        DatabaseUnavailable.
        """
        await self._feed.confirm(system)
        await self.order_keys.refresh(self._log.pool)
        if self._barriers:
            await self._assign_changes()
        entry = self._entries[lease]
        if entry.stale:
            await self._load(lease, entry.interest.passed, reason=entry.stale)
        else:
            await self._apply(lease.stream_id, entry)
        entry = self._entries[lease]
        await entry.zone.learn(
            [stored.event for stored in batch], through=self._feed.applied.sequence
        )
        return entry.interest

    def report_work(self) -> None:
        """Add the work of the matchers to the metrics."""
        by_label: dict[str, list[CallbackMatcher]] = {}
        for lease, entry in self._entries.items():
            by_label.setdefault(self._labels.of(lease.stream_id), []).append(entry.interest)
        self._reported = update_metrics(by_label, self._reported)

    def _on_policy_change(self) -> None:
        self._policies_changed = True
        self._pending.set()

    def _on_change(self, change: CatalogChange | None) -> None:
        if change is None:
            for entry in self._entries.values():
                entry.stale = "gap"
        else:
            self._barriers[change.barrier] = None
        self._pending.set()

    async def _assign_changes(self) -> None:
        """Assign received changes to the streams concerned; later callers wait for the first."""
        async with self._assigning:
            while self._barriers:
                barriers = list(self._barriers)[: limits.FORWARD_BARRIERS_MAX]
                by_stream: dict[
                    int, list[_StreamEntry]
                ] = {}  # entries created later have it in their snapshots
                for lease, entry in self._entries.items():
                    by_stream.setdefault(lease.stream_id, []).append(entry)
                values = {"barriers": barriers, "streams": list(by_stream)}
                retained_s = {"retained_s": limits.VERSIONS_RETAINED_S / 2}
                async with reading(self._log.pool) as connection:
                    may_be_purged = await fetch_value(
                        connection, SQL["may_be_purged"], {**values, **retained_s}
                    )
                    found = await fetch_all(
                        connection, _StreamChanges, SQL["streams_of_barriers"], values
                    )
                if may_be_purged:  # this process was suspended for long
                    self._on_change(None)
                for one in found:
                    for entry in by_stream[one.stream_id]:
                        entry.changes.append(one.changes)
                for barrier in barriers:
                    del self._barriers[barrier]

    async def _apply(self, stream_id: int, entry: _StreamEntry) -> None:
        """Apply a stream's changes in order; other streams do not wait for its compilation."""
        async with entry.applying:
            while entry.changes:
                barriers, groups = entry.changes[0]
                async with reading(self._log.pool) as connection:
                    written = await versions_of_barriers(connection, barriers, stream_id)
                    concerned = (*groups, *(one.group for one in written))
                    passed = entry.interest.passed
                    found = await suspensions_of(connection, concerned, stream_id, passed)
                await entry.take(VersionChanges(await compiled(written), found))
                del entry.changes[0]

    async def _rebuild(self) -> None:
        """Give streams whose strategy changed a matcher of the new strategy."""
        self._policies_changed = False
        async with reading(self._log.pool) as connection:
            ids = [lease.stream_id for lease in self._entries]
            rows = await fetch_all(connection, _StreamStrategy, SQL["strategies"], (ids,))
        strategies = {row.id: row.matching for row in rows}
        for lease, entry in list(self._entries.items()):
            interest, strategy = entry.interest, strategies.get(lease.stream_id)
            if not entry.loaded or strategy in (None, interest.matching.strategy):
                continue
            await self._change_strategy(entry, interest.matching._replace(strategy=strategy))
            self._indexes.retry(lease.stream_id)
            log.info("interest_rebuilt", stream=lease.stream_id, strategy=strategy)

    async def _change_strategy(self, entry: _StreamEntry, matching: StreamStrategy) -> None:
        """Rebuild an interest for another strategy. Versions in an index are not in memory, so the
        interest is loaded again for a strategy without an index.
        """
        async with self._building:
            if entry.interest.indexed is not None and not matching.is_indexed:
                entry.stale = "strategy"
                return
            for _ in entry.interest.rebuild(matching):
                await asyncio.sleep(0)
        metrics.FORWARD_BUILDS.labels(reason="strategy").inc()

    async def _swap(self, lease: Lease, entry: _StreamEntry) -> None:
        """Take a stream's newer index. Versions that it lacks stay in memory; those that change
        meanwhile are in both, or in memory only. Raises DatabaseUnavailable.
        """
        interest, stream_id = entry.interest, lease.stream_id
        epoch = await self._indexes.open(stream_id)
        present = None if interest.indexed is None else interest.indexed.epoch
        if epoch is None or (present is not None and present.manifest == epoch.manifest):
            return
        async with self._building:
            interest.record_changes()
            try:
                await self._swap_in(lease, entry, epoch)
            except IndexDamaged:
                self._indexes.refuse(stream_id, epoch, DAMAGED)
            finally:
                interest.discard_changes()

    async def _swap_in(self, lease: Lease, entry: _StreamEntry, epoch: Epoch) -> None:
        """Swap to the epoch. The interest records changes meanwhile, so none is lost."""
        interest, stream_id = entry.interest, lease.stream_id
        present = None if interest.indexed is None else interest.indexed.epoch
        async with reading(self._log.pool) as connection:
            check = await check_epoch(connection, stream_id, interest.passed, epoch, present)
        if check.refused:
            self._indexes.refuse(stream_id, epoch, check.refused)
        if not check.is_usable:
            return
        indexed = await asyncio.to_thread(IndexedVersions, epoch, check.names, entry.zone.hierarchy)
        for _ in interest.swap(indexed, check.ended):
            await asyncio.sleep(0)
        _report_opened(lease, epoch, "swapped", interest)

    async def _load(self, lease: Lease, passed: int, *, reason: str) -> None:
        """Open the index or read all versions, with the rest from one snapshot, and build the
        interest.

        The entry exists before the snapshot is taken, so changes after the snapshot wait in
        `deferred`.
        """
        stream_id = lease.stream_id
        async with reading(self._log.pool) as connection:
            zone = await zone_of_stream(connection, self._zones, stream_id)
        entry = _StreamEntry(CallbackMatcher(passed, groups_of=zone.groups_of), zone)
        self._entries[lease] = entry
        has_none = stream_id == SYSTEM_STREAM_ID
        epoch = None if has_none else await self._indexes.open(stream_id)
        async with reading(self._log.pool, seconds=limits.FORWARD_LOAD_S_MAX) as connection:
            found = await load(connection, stream_id, passed, epoch)
        count = len(found.written)
        try:
            entry.interest = await self._build(passed, found, zone, epoch)
            while entry.deferred:
                await take(entry.interest, entry.deferred.pop(0))
        except IndexDamaged:
            if epoch is not None:
                self._indexes.refuse(stream_id, epoch, DAMAGED)
            raise
        entry.loaded = True
        self._on_policy_change()  # it may have changed since the snapshot
        metrics.FORWARD_BUILDS.labels(reason=reason).inc()
        if epoch is not None and found.check.refused:
            self._indexes.refuse(stream_id, epoch, found.check.refused)
        if epoch is not None and found.check.is_usable:
            _report_opened(lease, epoch, "opened", entry.interest)
        log.info(
            "interest_loaded",
            stream=stream_id,
            versions=count,
            built_through=found.check.moment.system,
            strategy=found.check.moment.strategy,
            reason=reason,
        )

    async def _build(
        self, passed: int, found: LoadedInterest, zone: ZoneView, epoch: Epoch | None
    ) -> CallbackMatcher:
        check, written, suspensions = found
        matching = StreamStrategy(check.moment.strategy, zone.hierarchy)
        interest = CallbackMatcher(passed, matching, groups_of=zone.groups_of)
        if epoch is not None and check.is_usable:
            interest.indexed = await asyncio.to_thread(
                IndexedVersions, epoch, check.names, zone.hierarchy
            )
        await take(interest, VersionChanges(await compiled(written), suspensions))
        return interest


async def take(interest: CallbackMatcher, changes: VersionChanges) -> None:
    """Add versions in time slices of the event loop. A batch at hand was read before these changes
    were announced and does not depend on them, so it may be matched meanwhile.
    """
    await run_in_slices(_steps(interest, changes.versions))
    interest.suspend(changes.suspensions)


def _steps(interest: CallbackMatcher, versions: list[StreamVersion]) -> Iterator[None]:
    for at in range(0, len(versions), _STEP_VERSIONS):
        interest.take(versions[at : at + _STEP_VERSIONS])
        yield


def _report_opened(lease: Lease, epoch: Epoch, how: str, interest: CallbackMatcher) -> None:
    """Count and log an index that was opened."""
    metrics.INDEX_OPENED.labels(how=how).inc()
    log.info(
        "index_taken",
        how=how,
        stream=lease.stream_id,
        epoch=epoch.manifest.epoch,
        registrations=len(epoch.base),
        in_memory=interest.sizes.delta,
    )
