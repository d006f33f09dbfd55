"""Reads pages of the log for replay runs and previews, and plans what to write. SQL module."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from delivery.lane_marks import FILLED
from delivery.recovery.runs import (
    ExistingDelivery,
    LogParams,
    LogPosition,
    PagePlan,
    PageRules,
    ReplayMatcher,
    StreamRange,
    plan_page,
)
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import Gone
from eventhub.event.envelope import Event
from eventhub.eventlog.read import ReadLimits, read
from eventhub.eventlog.stored import ArchivedSegment, Cursor, ReadsArchive, StoredEvent
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value
from eventhub.types.registry import ZoneTypes, read_zone_types
from registrations.filter_source import FilterSource

SQL = queries.load("delivery/sql/replay.sql", filled=FILLED)


class ReplayTarget(NamedTuple):
    """The endpoint to which events are sent, its zone, and its client with its groups of now."""

    endpoint_id: int
    zone_id: int
    zone: str
    client: str
    groups: list[str]


class PlannedPage(NamedTuple):
    """A page of one segment and its plan. `position`: where the run is after it. `missing`: events
    before it that are no longer stored. `at_end`: nothing is left in all ranges.
    """

    plan: PagePlan
    position: LogPosition
    missing: int
    at_end: bool


class LogPages:
    """The pages of a run over the log."""

    def __init__(
        self,
        connection: Connection,
        archive: ReadsArchive | None,
        clock: Clock,
        target: ReplayTarget,
        params: LogParams,
    ) -> None:
        self._connection = connection
        self._archive = archive
        self._clock = clock
        self._target = target
        self._params = params
        self._matcher = ReplayMatcher(
            node_of(params), target.client, frozenset(target.groups), target.zone
        )
        self._types: ZoneTypes | None = None

    def start(self) -> LogPosition:
        """Return the position before the first event."""
        return start_of(self._params)

    async def segment_at(self, stream_id: int, sequence: int) -> str | None:
        """Return the segment of a stream's event; None if it is no longer readable."""
        values = {"stream_id": stream_id, "sequence": sequence}
        segment: str | None = await fetch_value(self._connection, SQL["segment_at"], values)
        return segment

    async def next(
        self, position: LogPosition, *, room: int, force: bool, events_max: int, through: int
    ) -> PlannedPage:
        """Read and plan the next page after a position. `through`: the last event of the stream
        that may be planned now.

        Raises SegmentMismatch, StreamDeleted, LogHole, ArchiveUnavailable, ArchiveDamaged; Gone if
        there is no archive.
        """
        of_stream = self._params.ranges[position.range]
        last = min(of_stream.last, through)
        after = Cursor(position.segment, position.sequence)
        if after.sequence >= of_stream.last:
            return self._end_range(position)
        if after.sequence >= last:
            return PlannedPage(_NOTHING, position, 0, at_end=False)
        try:
            page = await self._read(of_stream, after, min(events_max, last - after.sequence))
        except Gone as gone:
            return self._skip(gone, of_stream, position)
        if not page:
            return PlannedPage(_NOTHING, position, 0, at_end=False)
        existing = await self._existing(page)
        rules = PageRules(
            self._matcher, of_stream.stream_id, self._hierarchy, self._clock.now_us(), force
        )
        plan = plan_page(page, existing, rules, room)
        if plan.last is None:
            return PlannedPage(plan, position, 0, at_end=False)
        reached = LogPosition(position.range, *plan.last)
        if reached.sequence >= of_stream.last:
            return self._end_range(reached)._replace(plan=plan)
        return PlannedPage(plan, reached, 0, at_end=False)

    def _end_range(self, position: LogPosition) -> PlannedPage:
        """Return the step to the next stream; at the end of the last one the run is complete."""
        number = position.range + 1
        if number >= len(self._params.ranges):
            return PlannedPage(_NOTHING, position, 0, at_end=True)
        following = self._params.ranges[number]
        found = LogPosition(number, following.segment, following.after)
        return PlannedPage(_NOTHING, found, 0, at_end=False)

    def _skip(self, gone: Gone, of_stream: StreamRange, position: LogPosition) -> PlannedPage:
        """Return the step past events that are no longer stored. Raises Gone if that is unknown."""
        resume = gone.details.get("resume")
        if resume is None:
            raise gone
        reached = min(resume["sequence"], of_stream.last)
        missing = reached - position.sequence
        found = LogPosition(position.range, resume["segment"], reached)
        return PlannedPage(_NOTHING, found, missing, at_end=False)

    async def _read(self, of_stream: StreamRange, after: Cursor, count: int) -> list[StoredEvent]:
        """Return the next events, all of one segment."""
        bounds = ReadLimits(count, limits.READ_BYTES_MAX)
        found = await read(self._connection, of_stream.stream_id, after, bounds)
        if isinstance(found, ArchivedSegment):
            if self._archive is None:
                raise Gone("The event is in the archive, and this hub runs without an archive.")
            found = await asyncio.to_thread(self._archive.read, found, after.sequence, *bounds)
        page = [one for one in found if one.segment == found[0].segment]
        await self._learn([one.event for one in page])
        return page

    async def _existing(self, page: Sequence[StoredEvent]) -> dict[int, ExistingDelivery]:
        values = {
            "endpoint_id": self._target.endpoint_id,
            "segment": page[0].segment,
            "first": page[0].sequence,
            "last": page[-1].sequence,
        }
        rows = await fetch_all(self._connection, ExistingDelivery, SQL["existing"], values)
        return {row.sequence: row for row in rows}

    def _hierarchy(self, event: Event) -> tuple[str, ...]:
        return (event.type,) if self._types is None else self._types.hierarchy(event)

    async def _learn(self, events: Sequence[Event]) -> None:
        """Load the definitions that the events' types need; they never change."""
        if self._types is None or not all(map(self._types.knows, events)):
            self._types = await read_zone_types(self._connection, self._target.zone_id)


_NOTHING = PagePlan([], [], [], 0, 0, 0, None, blocked=False)


def node_of(params: LogParams) -> Any:
    """Return the filter of a run as a tree; None: all events."""
    if params.language is None:
        return None
    return FilterSource(params.language, params.filter).read().parsed.node


def start_of(params: LogParams) -> LogPosition:
    """Return the position before the first event of a run."""
    first = params.ranges[0]
    return LogPosition(0, first.segment, first.after)


def log_position(text: str) -> LogPosition:
    """Return a stored position."""
    return LogPosition(**orjson.loads(text))
