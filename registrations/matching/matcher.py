"""What every strategy of matching is: specs go in under a number, an event gives the numbers that
match. Plain module.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from eventhub.event.envelope import Event
from registrations.matching.spec import Spec, Specs


@dataclass(slots=True)
class Counters:
    """The work of a matcher since it was made."""

    lookups: int = 0  # one per pair of an event and gate (domain and type) that may hold it
    touched: int = 0  # what was looked at because of a pair it has in common with an event
    evaluated: int = 0  # tests that were tried; one of several conjunctions counts once an event
    compared: int = 0  # signatures that were compared with an event's fields (OIF-25)
    shadowed: int = 0  # tests whose answer followed from that of another (OIF-28)
    rebuilds: int = 0  # parts of the structure that were made anew; see each strategy


def summed(parts: Sequence[Counters]) -> Counters:
    """The work of several together."""
    return Counters(
        sum(part.lookups for part in parts),
        sum(part.touched for part in parts),
        sum(part.evaluated for part in parts),
        sum(part.compared for part in parts),
        sum(part.shadowed for part in parts),
        sum(part.rebuilds for part in parts),
    )


class Matcher(Protocol):
    """Which specs does an event match? All strategies give the same set, in an order of their own.

    Concurrency: none. One task owns a matcher; `match` never awaits and leaves nothing behind.
    """

    @property
    def counters(self) -> Counters: ...

    def add(self, id: int, spec: Spec) -> None:
        """Take a spec in, in place; it is matched from the next event on (SUN-11). Another spec
        under that number is replaced."""

    def remove(self, id: int) -> None:
        """Forget a number; nothing happens if it is not there."""

    def match(self, event: Event) -> list[int]:
        """The numbers of all specs that the event matches, each once."""

    def __len__(self) -> int:
        """How many numbers are in."""


@runtime_checkable
class TakesFilters(Protocol):
    """A matcher that knows filters of several specs itself."""

    def put(self, id: int, specs: Specs) -> None:
        """Take a filter in; it is told once, whichever of its specs match."""
