"""The interface of an engine that finds patterns over several events: what it is fed, what it
answers, and how its state is saved. Plain module.

READY's compound patterns (`registrations.patterns`) and OIF's temporal language have an engine
each. The process that runs them reads the log and owns the checkpoint: one engine has all patterns
of one group, is fed every event of the group's streams once, in one order, and its state is saved
in the transaction that appends its outputs. An engine does no I/O, reads no clock and draws no
random numbers, so the same events give the same outputs, also after a restore in between.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from eventhub.event.envelope import Event
from registrations.filters.ast import Node, Scalar


class EventPosition(NamedTuple):
    """The position of an event. Positions of one group are compared by `order`, which is unique and
    ascends; times may repeat or go back, and decide only what is outside of a pattern's window.
    """

    order: int  # of all events that the group consumed, in the order in which it did; from 1
    stream: int  # its id
    segment: str  # its UUID
    sequence: int
    time_us: int  # of its append, by the hub's clock


class NewEvent(NamedTuple):
    """An event that a pattern created. `domain`: "" if the pattern names none."""

    domain: str
    type: str
    attributes: dict[str, Any]


Bound = tuple[
    EventPosition | NewEvent, ...
]  # what a variable is bound to; one value for a single event


class Match(NamedTuple):
    """A pattern that matched as a whole. `position`: of the event that completed it."""

    pattern: int
    key: Scalar  # of the partition; None: the pattern has no partitions
    position: EventPosition
    bindings: Mapping[str, Bound]


class Notify(NamedTuple):
    """A notification to send. `target`: a name that the owner of the pattern resolves; None: the
    owner itself. `bindings`: the events to deliver, by variable.
    """

    pattern: int
    key: Scalar
    position: EventPosition
    bindings: Mapping[str, Bound]
    target: str | None = None


class Announce(NamedTuple):
    """An event to append. `stream`: its name; None: the stream of the event at `position`.
    `causes`: the events that are bound, in order.
    """

    pattern: int
    key: Scalar
    position: EventPosition
    event: NewEvent
    causes: tuple[EventPosition, ...]
    stream: str | None = None


class Dropped(NamedTuple):
    """Partial matches that were discarded before they matched or failed. `reason`: a word of the
    engine's documentation, such as `keys_max`; `count`: how many since the last report of it.
    """

    pattern: int
    key: Scalar
    position: EventPosition
    reason: str
    count: int  # type: ignore[assignment]  # the tuple has a method of that name


class Ended(NamedTuple):
    """A pattern that will never match again, because it was to match `once`."""

    pattern: int
    position: EventPosition


Output = Match | Notify | Announce | Dropped | Ended


class Waiting(NamedTuple):
    """One element of a pattern in one of its partial matches, for people (RDY-46)."""

    element: str  # as the pattern writes it
    status: str  # inactive, waiting, matched or failed
    since: EventPosition | None  # where it started: it sees later events only
    expires_us: int | None  # when its window ends; None: not by time
    bound: Mapping[str, Bound]  # by itself and the elements below
    children: tuple["Waiting", ...] = ()


class PatternLeaves(Protocol):
    """The distinct filters of a group's patterns. The engines of a group share one, so that one
    look-up finds what an event is to all of their patterns; `LeafIndex` in leaves.py is one, and so
    may be an index that has other registrations too.
    """

    def add(self, node: Node) -> int:
        """Add a filter, or another use of an equal one; return its number. Raises
        FilterTooLarge.
        """

    def remove(self, number: int) -> None:
        """Remove one use of a filter; with the last one the filter."""

    def match(self, event: Event) -> Sequence[int]:
        """Return the numbers of the filters that an event passes, in any order. The engines call it
        for the same event one after the other; only the first call evaluates it.
        """

    def __len__(self) -> int:
        """Return the number of distinct filters."""


class PatternEngine(Protocol):
    """All patterns of one group, under numbers that the caller gives.

    Concurrency: none. One task owns an engine; no method awaits.
    """

    def feed(self, position: EventPosition, event: Event) -> list[Output]:
        """Take the next event, whose position is after all others, and return the outputs that it
        causes, in the order in which they apply.
        """

    def state(self) -> bytes:
        """Return the state of all partial matches, with the version of its format."""

    def restore(self, state: bytes) -> None:
        """Replace the state of an engine that has the same patterns. The outputs from then on equal
        those of the engine that returned it. Partial matches of a pattern that is unknown, or which
        has changed, are discarded. Raises ValueError for an unknown format.
        """

    def waiting(self, pattern: int, key: Scalar = None) -> Waiting | None:
        """Return what a pattern waits for, of one partition; None if it has no such partition."""
