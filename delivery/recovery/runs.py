"""Replay runs: what they replay, their states as data, and what they do with a page of events.
Plain module.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson

from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import Event
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, holds

RunState = Literal["running", "paused", "completed", "cancelled", "failed"]
WaitsFor = Literal["endpoint", "backlog", "forwarder", "archive"]


class RunAction(NamedTuple):
    """A requested change of a run: the states in which it is possible, the state that it leads to,
    and the event of `system` that announces it.
    """

    name: str
    states: tuple[RunState, ...]
    result: RunState
    announced: str


ACTIVE: tuple[RunState, ...] = ("running", "paused")
PAUSE = RunAction("pause", ("running",), "paused", "replay.paused")
RESUME = RunAction("resume", ("paused",), "running", "replay.resumed")
CANCEL = RunAction("cancel", ACTIVE, "cancelled", "replay.cancelled")
# Deliveries in these states are not sent again without `force`.
_DONE = frozenset({"delivered", "discarded"})


class StreamRange(NamedTuple):
    """The events of a stream after a cursor, up to a sequence."""

    stream_id: int
    stream: str
    segment: str
    after: int
    last: int


class LogParams(NamedTuple):
    """Events of the log. `language` None: all events; else those that the filter matches.
    `registration` and `version`: it is the filter of that version.
    """

    ranges: tuple[StreamRange, ...]
    language: str | None = None
    filter: Any = None
    registration: int | None = None
    version: int | None = None

    def json(self) -> dict[str, Any]:
        return {**self._asdict(), "ranges": [one._asdict() for one in self.ranges]}

    @property
    def events(self) -> int:
        """The number of events in the ranges."""
        return sum(max(one.last - one.after, 0) for one in self.ranges)


class FailedParams(NamedTuple):
    """Deliveries of the endpoint that ended in these states within a time. `outcome`, `status`: of
    their last attempt; `stream_ids`: of these streams; None: any.
    """

    states: tuple[str, ...]
    since_us: int
    until_us: int
    outcome: str | None = None
    status: int | None = None
    stream_ids: tuple[int, ...] | None = None

    def json(self) -> dict[str, Any]:
        return self._asdict()


class LogPosition(NamedTuple):
    """The last event examined, in the range of this number."""

    range: int
    segment: str
    sequence: int


class FailedPosition(NamedTuple):
    """The last delivery examined."""

    segment_id: int = 0
    sequence: int = 0


def log_params(text: str) -> LogParams:
    """Return stored parameters of a run over the log."""
    found = orjson.loads(text)
    ranges = tuple(StreamRange(**one) for one in found.pop("ranges"))
    return LogParams(ranges, **found)


def failed_params(text: str) -> FailedParams:
    """Return stored parameters of a run over deliveries."""
    return FailedParams(**orjson.loads(text))


class ReplayMatcher(NamedTuple):
    """The filter of a run (None: all events) and the client that must be allowed to see an event.
    `zone`: the client's.
    """

    node: Node | None
    client: str
    groups: frozenset[str]
    zone: str

    def matches(self, event: Event, stream_id: int, hierarchy: TypeHierarchy) -> bool:
        """Return whether the event is sent: as a dry run and a forwarder decide."""
        if not may_see(event, self.client, self.groups):
            return False
        if stream_id == SYSTEM_STREAM_ID and not is_visible_in_zone(event, self.zone):
            return False
        return self.node is None or holds(self.node, event, hierarchy)


class ExistingDelivery(NamedTuple):
    """A delivery of an event that the endpoint has. `is_notice`: a gap notice took its place."""

    partition_id: int
    sequence: int
    state: str
    is_notice: bool


class PageRules(NamedTuple):
    """What decides over a page of events of one stream."""

    matcher: ReplayMatcher
    stream_id: int
    hierarchy: TypeHierarchy
    now_us: int
    force: bool


class PagePlan(NamedTuple):
    """What a run does with a page: `new` events get a delivery, `again` has deliveries to be sent
    again. `last`: the last event examined, None if none was. `blocked`: the next event waits for a
    gap notice that is pending.
    """

    new: list[StoredEvent]
    again: list[ExistingDelivery]
    events: list[StoredEvent]  # of both, in order
    examined: int
    matched: int
    skipped: int
    last: Cursor | None
    blocked: bool


def plan_page(
    page: Sequence[StoredEvent],
    existing: Mapping[int, ExistingDelivery],
    rules: PageRules,
    room: int,
) -> PagePlan:
    """Decide over a page of events of one segment, in order, until `room` deliveries are to be
    written. The hierarchy knows their types.
    """
    new: list[StoredEvent] = []
    again: list[ExistingDelivery] = []
    events: list[StoredEvent] = []
    examined = matched = skipped = 0
    last: Cursor | None = None
    for stored in page:
        event = stored.event
        expired = 0 < event.expires_at_us <= rules.now_us and not rules.force
        if not expired and rules.matcher.matches(event, rules.stream_id, rules.hierarchy):
            if len(events) >= room:
                break
            found = existing.get(stored.sequence)
            if found is not None and found.is_notice and found.state == "pending":
                return PagePlan(new, again, events, examined, matched, skipped, last, True)
            matched += 1
            if found is None:
                new.append(stored)
                events.append(stored)
            elif _is_sent_again(found, force=rules.force):
                again.append(found)
                events.append(stored)
            else:
                skipped += 1
        examined += 1
        last = stored.cursor
    return PagePlan(new, again, events, examined, matched, skipped, last, False)


def _is_sent_again(found: ExistingDelivery, *, force: bool) -> bool:
    if found.state == "pending":
        return False
    return found.is_notice or force or found.state not in _DONE
