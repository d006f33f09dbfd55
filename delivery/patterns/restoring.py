"""Restores the engines of a group: the snapshot, then the events and changes of the journal in its
order. SQL module.

What the engines returned for these events was written already, so it is not written again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from delivery.forward.zone import ZoneView
from delivery.patterns.changes import PendingChanges
from delivery.patterns.group_tables import (
    GroupLease,
    GroupSnapshot,
    JournalRow,
    LeasedGroup,
    PatternTotals,
    StoredPatternVersion,
    journal_of,
    leased_group,
    snapshot_of,
    stream_names,
    totals_of,
    versions_of,
)
from delivery.patterns.outputs import OutputOwner, RunningVersion
from delivery.patterns.turns import GroupTurns
from eventhub.base import limits
from eventhub.base.errors import EventHubError, Gone, UnknownStream
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.event.envelope import Event
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import Connection
from registrations.agents.run import AgentOutput
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.definition import Tree, parse_text
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.patterns.pattern_engine import EventPosition

log = get_logger(__name__)
throttled = ThrottledLog(log)


class StateUnreadable(Exception):
    """The snapshot of a group cannot be read: it is damaged, or from a newer release."""


class StoredGroup(NamedTuple):
    """What the tables have of a group, in one snapshot. `loading_since_s`: when restoring it began,
    by the monotonic clock.
    """

    group: LeasedGroup
    owner: OutputOwner
    snapshot: GroupSnapshot | None
    journal: list[JournalRow]
    versions: dict[int, StoredPatternVersion]
    totals: dict[int, PatternTotals]
    loading_since_s: float

    @property
    def with_state(self) -> set[int]:
        """The versions that the snapshot or the journal has."""
        found = set() if self.snapshot is None else {*self.snapshot.versions}
        return found.union(*(row.added for row in self.journal))

    @property
    def is_over(self) -> bool:
        """Whether all versions with state have ended, so that their state is not needed."""
        versions = (self.versions.get(id) for id in self.with_state)
        return all(one is None or one.until is not None for one in versions)

    def without_state(self) -> "StoredGroup":
        """Return the group with those versions only that have no state."""
        had = self.with_state
        versions = {id: one for id, one in self.versions.items() if id not in had}
        return self._replace(snapshot=None, journal=[], versions=versions)


class CompiledVersions:
    """The compiled texts of one group's versions: compiled once, however often it is restored."""

    def __init__(self) -> None:
        self._compiled: dict[int, Tree | None] = {}

    def of(self, version: StoredPatternVersion) -> HubPattern | None:
        """Return a version for engines; None if it cannot be compiled any more."""
        if version.id not in self._compiled:
            self._compiled[version.id] = _compiled(version)
        found = self._compiled[version.id]
        if found is None:
            return None
        return HubPattern(version.id, found, version.once, version.recent)

    def retain(self, versions: Iterable[int]) -> None:
        """Forget all others."""
        kept = set(versions)
        self._compiled = {id: one for id, one in self._compiled.items() if id in kept}


def _compiled(version: StoredPatternVersion) -> Tree | None:
    try:
        return parse_text(version.language, version.text)
    except EventHubError as error:
        throttled.warning("pattern_not_compiled", version=version.id, error=error.code)
        return None


async def load_group(
    connection: Connection, lease: GroupLease, since_s: float
) -> StoredGroup | None:
    """Read a group, which began at `since_s` by the monotonic clock; None if the lease is lost.
    Raises what psycopg raises.
    """
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        group = await leased_group(connection, lease)
        if group is None:
            return None
        snapshot = await snapshot_of(connection, group.id)
        journal = await journal_of(connection, group.id)
        needed = [] if snapshot is None else [*snapshot.versions]
        for row in journal:
            needed += row.added
        versions = await versions_of(connection, group.id, needed, 0)
        totals = await totals_of(connection, group.id)
        streams = [*group.streams, *([group.output_stream] if group.output_stream else [])]
        names = await stream_names(connection, streams)
    owner = OutputOwner(group.id, group.name, group.client, group.output_stream, names)
    known = {one.id: one for one in versions}
    return StoredGroup(group, owner, snapshot, journal, known, totals, since_s)


class GroupEngine:
    """The engine of one group, with the versions that it has and the changes that follow.

    `running`: the versions that were given to the engine, by number, also those that it refused.
    """

    def __init__(self, stored: StoredGroup, zone: ZoneView, compiled: CompiledVersions) -> None:
        self.zone = zone
        self.engine = HubEngine(zone.hierarchy)
        self.running: dict[int, RunningVersion] = {}
        self.changes = PendingChanges(stored.group.streams)
        self._compiled = compiled

    def add(
        self, version: StoredPatternVersion, recent: Sequence[tuple[EventPosition, Event]] = ()
    ) -> list[AgentOutput]:
        """Give a version to the engine; return what it finds among the recent events."""
        pattern = self._compiled.of(version)
        reports = pattern is not None and pattern.reports_matches
        self.running[version.id] = RunningVersion(
            version.id, version.pattern, version.name, version.number, reports
        )
        if pattern is None:
            return []
        try:
            return [*self.engine.add(pattern, recent)]
        except EventHubError as error:
            throttled.warning("pattern_refused", version=version.id, error=error.code)
            return []

    def remove(self, number: int) -> None:
        """Take a version from the engine."""
        self.running.pop(number, None)
        self.engine.remove(number)

    def recalled(self, version: StoredPatternVersion) -> int:
        """Return how many recent events a version recognises."""
        pattern = self._compiled.of(version)
        return 0 if pattern is None else pattern.recalled


async def restored(
    stored: StoredGroup, zone: ZoneView, compiled: CompiledVersions, log: Log, turns: GroupTurns
) -> GroupEngine:
    """Return the engine of a group as it was at its checkpoint. Raises StateUnreadable, and what
    reading raises.
    """
    found = GroupEngine(stored, zone, compiled)
    turn = partial(turns.run, stored.group.client_id, is_urgent=True)
    snapshot = stored.snapshot
    if snapshot is not None:
        await turn(_added(found, stored, snapshot.versions))
        try:
            await asyncio.to_thread(found.engine.restore, snapshot.state)
        except (ValueError, LookupError, TypeError) as error:
            raise StateUnreadable from error
    for row in stored.journal:
        for number in row.removed:
            found.remove(number)
        await turn(_added(found, stored, row.added))
        order = row.first
        for run in row.runs:
            async for events in events_of(log, run):
                first = order + events[0].sequence - run.first
                await turn(_fed(found.engine, run, events, first))
            order += len(run)
    found.changes.take([*stored.versions.values()], found.running, stored.group.cursors)
    compiled.retain([*stored.versions])
    return found


def _added(found: GroupEngine, stored: StoredGroup, numbers: Sequence[int]) -> Iterator[None]:
    for number in numbers:
        if number in stored.versions:
            found.add(stored.versions[number])
        yield


def _fed(
    engine: HubEngine, run: ConsumedRun, events: Sequence[StoredEvent], order: int
) -> Iterator[None]:
    for at, stored in enumerate(events, order):
        for _ in engine.steps(position_of(at, run.stream, stored), stored.event):
            yield
        yield


def position_of(order: int, stream: int, stored: StoredEvent) -> EventPosition:
    """Return the position of an event in a group."""
    return EventPosition(order, stream, stored.segment, stored.sequence, stored.appended_at_us)


async def events_of(log: Log, run: ConsumedRun) -> AsyncIterator[list[StoredEvent]]:
    """Yield the events of a run in pages; those that were removed from the log are left out."""
    read = log.reader(run.stream)
    cursor = Cursor(run.segment, run.first - 1)
    while cursor.sequence < run.last:
        page = ReadLimits(min(limits.READ_EVENTS_MAX, run.last - cursor.sequence))
        try:
            events = await read(cursor, page)
        except (UnknownStream, StreamDeleted):
            return
        except Gone as gone:
            if "resume" not in gone.details:
                raise
            cursor = Cursor(**gone.details["resume"])
            throttled.warning("pattern_events_gone", stream=run.stream, run=run.first)
            continue
        if not events:
            return
        cursor = events[-1].cursor
        yield [one for one in events if one.sequence <= run.last]


# returns the events that the owner of the group may see, each with its stream
Visible = Callable[[Sequence[tuple[int, StoredEvent]]], Awaitable[list[tuple[int, StoredEvent]]]]


async def recent_events(
    log: Log, engine: HubEngine, cursors: dict[int, Cursor], count: int, visible: Visible
) -> list[tuple[EventPosition, Event]]:
    """Return the last events that a group consumed, `count` at most, and before them earlier ones
    of its streams that it may see, by the time of their append.
    """
    consumed = engine.consumed
    found: list[tuple[EventPosition, Event]] = []
    order = consumed.order - min(count, consumed.count)
    for run in consumed.last(count):
        async for events in events_of(log, run):
            for at, stored in enumerate(events, order + 1 + events[0].sequence - run.first):
                found.append((position_of(at, run.stream, stored), stored.event))
        order += len(run)
    missing = count - consumed.count
    if missing <= 0:
        return found
    earlier: list[tuple[int, StoredEvent]] = []
    for stream, cursor in cursors.items():
        first = consumed.first_of(stream)
        last = cursor.sequence if first is None else first - 1
        earlier += [(stream, one) for one in await _before(log, stream, last, missing)]
    earlier = await visible(earlier)
    earlier.sort(key=lambda one: (one[1].appended_at_us, one[0], one[1].sequence))
    earlier = earlier[-missing:]
    begin = consumed.order - consumed.count - len(earlier) + 1
    return [
        (position_of(at, stream, stored), stored.event)
        for at, (stream, stored) in enumerate(earlier, begin)
    ] + found


async def _before(log: Log, stream: int, last: int, count: int) -> list[StoredEvent]:
    """Return the events of a stream up to a sequence, as far as they are stored."""
    first = max(last - count + 1, 1)
    if last < first:
        return []
    try:
        cursor = await log.cursor_before(stream, first)
    except Gone as gone:
        if "resume" not in gone.details:
            return []
        cursor = Cursor(**gone.details["resume"])
    run = ConsumedRun(stream, cursor.segment, cursor.sequence + 1, last)
    return [one async for page in events_of(log, run) for one in page]
