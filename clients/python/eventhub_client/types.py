"""The client's values, in-process and remote alike: cursors, receipts, delivered events, pages,
problems. Plain module.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Cursor(NamedTuple):
    """The position of the last event received: its segment's UUID and its sequence."""

    segment: str
    sequence: int

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Parse `<segment>:<sequence>`. Raises ValueError."""
        segment, _, sequence = text.rpartition(":")
        try:
            return cls(str(UUID(segment)), int(sequence))
        except ValueError:
            raise ValueError(f"A cursor is <segment>:<sequence>, not {text!r}.") from None

    @property
    def text(self) -> str:
        """The form in query strings and in Last-Event-ID."""
        return f"{self.segment}:{self.sequence}"


class At(NamedTuple):
    """A moment, which the hub resolves to a cursor (times never order events; EMC-41)."""

    time_us: int  # since 1970 UTC

    @classmethod
    def of(cls, moment: datetime | str) -> "At":
        """Return the moment of a time with its offset, or of RFC 3339 text. Raises ValueError."""
        if isinstance(moment, str):
            moment = datetime.fromisoformat(moment)
        if moment.tzinfo is None:
            raise ValueError(f"{moment} needs its offset from UTC, such as Z.")
        return cls((moment - _EPOCH) // _MICROSECOND)

    @property
    def text(self) -> str:
        """RFC 3339 in UTC, with microseconds."""
        moment = _EPOCH + timedelta(microseconds=self.time_us)
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


Start = Literal["now", "oldest", "boot"] | Cursor | At
"""The start of a listener: after the last event, at the first that is still stored, after the last
start of the hub, after a cursor, or at a time.
"""


class Range(NamedTuple):
    """A range of new sequences in one segment."""

    segment: str
    first: int
    last: int


class Duplicate(NamedTuple):
    """An event that was stored before: its index in the request, and its position."""

    at: int
    segment: str
    sequence: int


class DelayedEvent(NamedTuple):
    """An event that the hub appends when it is due: its index in the request, and the id of the
    timer by which it can be read, and cancelled before.
    """

    at: int
    timer: int
    due_at: str  # RFC 3339


class Receipt(NamedTuple):
    """The answer to an emit: the events are durable."""

    stream: str
    ranges: tuple[Range, ...]
    duplicates: tuple[Duplicate, ...]
    suppressed: tuple[int, ...] = ()  # indexes of events that match no interest and were not sent
    delayed: tuple[DelayedEvent, ...] = ()

    @classmethod
    def of(cls, answer: dict[str, Any]) -> "Receipt":
        """Return the receipt of an answer of the emit route."""
        return cls(
            answer["stream"],
            tuple(Range(i["segment"], i["first"], i["last"]) for i in answer["ranges"]),
            tuple(
                Duplicate(item["index"], item["segment"], item["sequence"])
                for item in answer["duplicates"]
            ),
            delayed=tuple(
                DelayedEvent(item["index"], item["timer"], item["due_at"])
                for item in answer.get("delayed", ())
            ),
        )

    @property
    def cursor(self) -> Cursor:
        """The last of the new events, or else the last of the duplicates. Raises ValueError if
        none of the events has a position.
        """
        if not self.ranges and not self.duplicates:
            if self.delayed:
                raise ValueError("The events have positions when they are due.")
            raise ValueError("Nothing was sent: nobody wants these events.")
        if self.ranges:
            return Cursor(self.ranges[-1].segment, self.ranges[-1].last)
        return Cursor(self.duplicates[-1].segment, self.duplicates[-1].sequence)


class Delivered(NamedTuple):
    """One event of a listen. Numbers between `prev` and `sequence` were filtered, not lost."""

    segment: str
    sequence: int
    prev: int
    liveness: str  # live; recovery: missed since a cursor; playback: replayed on demand
    event: dict[str, Any]  # its own fields, in the hub's native JSON
    registrations: tuple[int, ...] = ()  # the listener's registrations that matched
    appended_at: str = ""  # RFC 3339, the hub's clock; empty in-process
    latest_version: str = ""  # of the event's type, where it is newer than the event's (FOX-20)
    signature: str = ""  # of the event's tags, if `listen` requested it (FOX-17)
    variables: Mapping[int, str] = MappingProxyType({})  # by registration, bound to this event
    stream: str = ""  # of an event for a session
    out_of_order: str = ""  # late, hold or full: why it came out of the session's order
    attempt: int = 0  # of a pull: how often it was handed out

    @classmethod
    def of(cls, message: dict[str, Any]) -> "Delivered":
        """Return the event of a message; without `prev` it is the sequence before."""
        sequence = message["sequence"]
        return cls(
            message["segment"],
            sequence,
            message.get("prev", sequence - 1),
            message.get("liveness", "playback"),
            message["event"],
            tuple(message.get("registrations", ())),
            message.get("appended_at", ""),
            message.get("latest_version", ""),
            message.get("signature", ""),
            {int(id): next(iter(bound)) for id, bound in message.get("bindings", {}).items()},
            message.get("stream", ""),
            message.get("out_of_order", ""),
            message.get("attempt", 0),
        )

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.segment, self.sequence)

    def is_known(self, cursor: Cursor) -> bool:
        """Return whether a reader at this cursor has the event."""
        return self.segment == cursor.segment and self.sequence <= cursor.sequence


class StateItem(NamedTuple):
    """The latest event of a key, in a snapshot of a keyed stream."""

    key: str
    segment: str
    sequence: int
    event: dict[str, Any]
    appended_at: str = ""

    @classmethod
    def of(cls, message: dict[str, Any]) -> "StateItem":
        return cls(
            message["key"],
            message["segment"],
            message["sequence"],
            message["event"],
            message.get("appended_at", ""),
        )


class Snapshot(NamedTuple):
    """The state of a keyed stream at a cursor: the latest event of each key. Events follow."""

    items: tuple[StateItem, ...]
    cursor: Cursor


class Page(NamedTuple):
    """Some of a stream's history, and the start of the next page."""

    events: tuple[Delivered, ...]
    cursor: Cursor | None  # None: there are no events before the page
    head: int  # the stream's last sequence at that time
    first: int  # the first that is stored

    @classmethod
    def of(cls, answer: dict[str, Any]) -> "Page":
        cursor = answer.get("cursor")
        return cls(
            tuple(Delivered.of(item) for item in answer["events"]),
            Cursor(cursor["segment"], cursor["sequence"]) if cursor else None,
            answer["head"],
            answer["first"],
        )


class Caused(NamedTuple):
    """The events that a change of ours caused: a range of sequences of one stream (EMC-10)."""

    segment: str
    first: int
    last: int


class Reply(NamedTuple):
    """An answer of the management API with the values of its headers."""

    json: Any  # None if it has none
    etag: str = ""  # of a single resource, for `If-Match`
    cursor: Cursor | None = None  # the last event of the affected stream
    caused: Caused | None = None
    action: str = ""  # the name of the change: the `correlation` of its events


class HubProblem(Exception):
    """A refusal of the hub: its problem document. `code` is stable; docs/errors lists all."""

    def __init__(self, problem: dict[str, Any], *, retry_after_s: float | None = None) -> None:
        self.problem = problem
        self.code = str(problem.get("code", "internal"))
        self.status = int(problem.get("status", 500))
        self.position: dict[str, Any] = problem.get("position", {})
        self.retry_after_s = retry_after_s
        super().__init__(f"{self.code}: {problem.get('detail', '')}")


class SessionEnded(Exception):
    """The hub ended a session on this connection: `reason` is `request`, `replaced`, `deleted` or
    `changed`.
    """

    def __init__(self, session: str, reason: str) -> None:
        self.session = session
        self.reason = reason
        super().__init__(f"The session {session} was disconnected: {reason}.")


class LossDetected(Exception):
    """A frame was lost: `prev` is not the last sequence of this listener (EMC-05)."""

    def __init__(self, *, known: int, prev: int) -> None:
        self.known = known
        self.prev = prev
        super().__init__(
            f"Known up to {known}, but the next frame follows {prev}: a frame was lost."
        )
