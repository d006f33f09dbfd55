"""An event that is held for a session, and what an order has to offer. Plain module."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from eventhub.event.envelope import Event
from eventhub.eventlog.stored import Cursor, StoredEvent

# why an event was delivered out of the promised order: it came after a later one was delivered, its
# time to wait ended, or the queue was full
Disorder = Literal["", "late", "hold", "full"]


_NO_NAMES: set[str] = set()


class HeldEvent:
    """One event of the queue, from `put` until it is delivered. `item` is the caller's own."""

    __slots__ = (
        "arrival",
        "deadline_us",
        "disorder",
        "extended",
        "item",
        "matches",
        "missing",
        "names",
        "stored",
        "tracked",
        "waiting",
    )

    def __init__(
        self, tracked: "Tracked", stored: StoredEvent, item: Any, arrival: int, *, matches: bool
    ) -> None:
        self.tracked = tracked
        self.stored = stored
        self.item = item
        self.arrival = arrival  # its place among all events of the queue, in the order of `put`
        self.matches = matches  # False: it only counts for the order of others
        self.disorder: Disorder = ""
        # of orders that let events wait
        self.waiting = False
        self.extended = False
        self.deadline_us = 0
        self.missing = _NO_NAMES  # names of events that it waits for
        self.names: Sequence[str] = ()  # its own, by which others wait for it

    @property
    def stream(self) -> str:
        return self.tracked.stream

    @property
    def event(self) -> Event:
        return self.stored.event


class Tracked:
    """What remains of an event from `put` until the cursor is past it."""

    __slots__ = (
        *("acknowledged", "attempts", "before", "delivered", "held"),
        *("sequence", "settled", "stream"),
    )

    def __init__(self, stream: str, sequence: int, before: Cursor) -> None:
        self.stream = stream
        self.sequence = sequence
        self.before = before  # the position before it: the cursor while it is not settled
        self.held: HeldEvent | None = None  # until it is delivered
        self.delivered = False
        self.attempts = 1  # how often it was delivered, if it was
        self.acknowledged = False
        self.settled = False  # acknowledged, expired or not for this session


class Order(Protocol):
    """An order of delivery: takes events in the order of their arrival and gives them in its own.

    `sorts`: it may give an event before one that arrived earlier, so what is stored is read first.
    `needs_all`: it also needs the events that do not match.
    """

    sorts: bool
    needs_all: bool

    def put(self, held: HeldEvent, now_us: int) -> None: ...

    def note_delivered(self, held: HeldEvent) -> None:
        """Note an event that was delivered on an earlier connection."""

    def take(self, now_us: int, *, full: bool) -> HeldEvent | None:
        """Return the next event, and remove it; None if none is due. `full`: the queue takes no
        more, so that no event may wait for another one.
        """

    def wake_at_us(self) -> int | None:
        """Return the time from which `take` may return an event; None if it depends on `put`."""


def oldest_first(found: Iterable[HeldEvent]) -> list[HeldEvent]:
    """Return events in the order of their arrival."""
    return sorted(found, key=lambda held: held.arrival)
