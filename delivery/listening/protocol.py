"""The rules of the listening protocol without I/O: which events a listener gets, the content of
each frame, and the effect of an acknowledgement. Plain module.

Every frame of a listener carries `prev`, the last sequence reported to it before. A reader whose
last sequence is not `prev` has lost a frame; sequences between `prev` and `sequence` are events
that do not match its request (EMC-05).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from delivery.listening.frames import (
    NO_SUBJECT,
    EventHeader,
    FrameFormat,
    FrameSubject,
    Liveness,
    T,
)
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import (
    EventHubError,
    Gone,
    ListenerExists,
    TooManyRequests,
    UnknownListener,
)
from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import ALL_MASK
from eventhub.eventlog.read import Position
from eventhub.eventlog.stored import Cursor, StoredEvent
from registrations.errors import FiltersTooCostly
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.pairs import Pairs


class ListenerFilter(NamedTuple):
    """The filter of a listener: channel bits first (EMC-20), then the rest. Of `system` it passes
    the events of the client's zone and those of the whole hub; and it passes only events that the
    client may see (audience.py).
    """

    mask: int = ALL_MASK
    pairs: Pairs | None = None
    zone: str | None = None
    client: str | None = ""  # the recipient; None: an operator, who sees all events of the zone
    groups: frozenset[str] = frozenset()  # groups of the client
    session: str = ""  # for delivery to a session of the client: its name
    tree: Node | None = None  # instead of pairs, in any language
    hierarchy: TypeHierarchy = no_supertypes  # for tests of types
    cost: int = 0  # of one evaluation of the tree, in units of evaluation_cost.py

    @property
    def plain(self) -> bool:
        """Whether the mask alone decides for events without restrictions."""
        return self.zone is None and self.pairs is None and self.tree is None

    @property
    def events_per_slice(self) -> int:
        """The number of events to evaluate before other listeners get their time slice."""
        most = limits.LISTEN_TESTS_PER_SLICE_MAX // max(self.cost, 1)
        return max(1, min(limits.LISTEN_EVENTS_PER_SLICE_MAX, most))

    @property
    def audience(self) -> tuple[str | None, frozenset[str], str]:
        """What decides whether an event that is restricted may be seen."""
        return self.client, self.groups, self.session

    def for_principal(self, principal: Principal) -> "ListenerFilter":
        """Return the filter with the current rights of a principal."""
        client = None if principal.is_operator else principal.client
        return self._replace(client=client, groups=principal.groups)

    def matches(self, stored: StoredEvent, now_us: int) -> bool:
        """Return whether the event is to be delivered; count an expired one and skip it."""
        return self.selects(stored) and self.admits(stored, now_us)

    def selects(self, stored: StoredEvent) -> bool:
        """Return whether the event matches, before its audience is considered."""
        if not stored.mask & self.mask:
            return False
        if self.zone is not None and not is_visible_in_zone(stored.event, self.zone):
            return False
        if self.pairs is not None and not self.pairs.matches(stored.event):
            return False
        return self.tree is None or holds(self.tree, stored.event, self.hierarchy)

    def admits(self, stored: StoredEvent, now_us: int) -> bool:
        """Return whether the client may see the event, and it has not expired; count one
        that has.
        """
        event = stored.event
        if self.client is not None and not may_see(event, self.client, self.groups, self.session):
            return False
        if event.expires_at_us and event.expires_at_us <= now_us:
            metrics.EXPIRED.inc()
            return False
        return True


class MatchedRegistrations(NamedTuple):
    """The registrations that an event matched, ascending, and the variables that they bind."""

    ids: Sequence[int] = ()
    variables: Mapping[int, str] | None = None


NOTHING_MATCHED = MatchedRegistrations()


_NOTHING: deque[int] = deque(maxlen=0)  # unacknowledged, without a window


class ListenerState:
    """The state of one listener: its filter and the last sequence reported. A listener without a
    name is the only one of its connection, or serves a session.
    """

    __slots__ = (
        "_unacked",
        "filter",
        "last_reported",
        "missed",
        "name",
        "registrations",
        "signature",
        "started_head",
        "stream",
        "subject",
        "subject_json",
        "window",
    )

    def __init__(
        self,
        name: str,
        stream: str,
        filter: ListenerFilter,
        window: int | None = None,
        session: str = "",
    ) -> None:
        self.name = name
        self.stream = stream
        self.subject = FrameSubject("", session, stream) if session else FrameSubject(name)
        self.subject_json = self.subject.json
        self.missed: Liveness = "recovery"  # liveness of events from before the start
        self.filter = filter
        self.window = window
        self.registrations: Sequence[int] = ()  # those that it names instead of a filter
        self.signature = False  # whether frames have the signatures of events
        self.last_reported = 0  # the last sequence reported to the reader
        self.started_head = 0  # events above it were appended after the start
        self._unacked = _NOTHING if window is None else deque[int]()

    @property
    def full(self) -> bool:
        """Whether as many events as the window allows are unacknowledged."""
        return self.window is not None and len(self._unacked) >= self.window

    def start(self, position: Position) -> dict[str, Any]:
        """Start at a position; return the message that says so."""
        self.last_reported = position.cursor.sequence
        self.started_head = position.head
        return {
            "op": "listening",
            **self.subject.fields,
            "stream": self.stream,
            "cursor": position.cursor._asdict(),
            "head": position.head,
        }

    def event(
        self,
        stored: StoredEvent,
        form: FrameFormat[T],
        matched: MatchedRegistrations = NOTHING_MATCHED,
        latest: str = "",
        disorder: str = "",
    ) -> T:
        """Return the frame of a matching event. It names the registrations that matched, the
        variables that they bind, the latest version of the event's type if that is newer (FOX-20),
        and why it is out of a session's order, if it is.
        """
        liveness = "live" if stored.sequence > self.started_head else self.missed
        last, (ids, variables) = self.last_reported, matched
        subject = self.subject_json
        if disorder:
            subject = f'{subject}"out_of_order":"{disorder}",'
        header = EventHeader(subject, last, liveness, ids, latest, self.signature, variables)
        frame = form.event(header, stored)
        self.last_reported = stored.sequence
        if self.window is not None:
            self._unacked.append(stored.sequence)
        return frame

    def acknowledge(self, sequence: int) -> None:
        """Free the window of all events up to a sequence."""
        while self._unacked and self._unacked[0] <= sequence:
            self._unacked.popleft()

    def takes(self, count: int) -> bool:
        """Return whether the window has room for so many events."""
        return self.window is None or len(self._unacked) + count <= self.window

    def report(self, events: Sequence[StoredEvent]) -> None:
        """Note that the frames of events were sent."""
        self.last_reported = events[-1].sequence
        if self.window is not None:
            self._unacked.extend([stored.sequence for stored in events])

    def position(self, cursor: Cursor) -> dict[str, Any] | None:
        """Return the cursor up to which no event matched; None if the reader knows it."""
        if cursor.sequence == self.last_reported:
            return None
        position = {**cursor._asdict(), "prev": self.last_reported}
        self.last_reported = cursor.sequence
        return position


class SocketListeners:
    """The listeners of one socket by name."""

    def __init__(self) -> None:
        self.listeners: dict[str, ListenerState] = {}

    def require_new(self, name: str) -> None:
        """Raise ListenerExists or TooManyRequests if a listener of this name cannot be added."""
        if name in self.listeners:
            raise ListenerExists(listener=name)
        if len(self.listeners) >= limits.LISTENERS_PER_SOCKET_MAX:
            raise TooManyRequests(
                "This socket has the maximum number of listeners; open another socket.",
                listeners_max=limits.LISTENERS_PER_SOCKET_MAX,
            )

    def require_affordable(self, filter: ListenerFilter) -> None:
        """Raise FiltersTooCostly if the socket's filters would cost too much for one event."""
        cost = filter.cost
        used = sum(one.filter.cost for one in self.listeners.values())
        if cost and used + cost > limits.FILTERS_TRIED_MAX:
            raise FiltersTooCostly(cost=cost, used=used)

    def find(self, name: str) -> ListenerState:
        """Return a listener. Raises UnknownListener."""
        found = self.listeners.get(name)
        if found is None:
            raise UnknownListener(listener=name)
        return found


def hello(*, client: str, zone: str) -> dict[str, Any]:
    """Return the hub's first message."""
    return {
        "op": "hello",
        "protocol": "eventhub.v1",
        "client": client,
        "zone": zone,
        "ping_s": limits.PING_INTERVAL_S,
        "listeners_max": limits.LISTENERS_PER_SOCKET_MAX,
        "sessions_max": limits.SESSIONS_PER_SOCKET_MAX,
    }


def resume_cursor(error: Gone) -> Cursor | None:
    """Return the cursor after missing events, from which a reader can continue; None if unknown."""
    found = error.details.get("resume")
    return None if found is None else Cursor(found["segment"], found["sequence"])


def refusal(error: EventHubError, subject: FrameSubject = NO_SUBJECT) -> dict[str, Any]:
    """Return an error as a message.

    `gap` and `segment_mismatch` have message types of their own, because they are answers.
    """
    metrics.REFUSED.labels(code=error.code).inc()
    op = "error"
    if error.code in ("gap", "segment_mismatch"):
        metrics.GAPS.labels(code=error.code).inc()
        op = error.code
    return {"op": op, **error.problem(), **subject.fields}
