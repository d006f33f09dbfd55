"""The interface of every matching strategy: specs are added under numbers, and an event returns the
numbers that match. Plain module.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from eventhub.event.envelope import Event
from registrations.matching.spec import Spec, Specs


@dataclass(slots=True)
class Counters:
    """The work of a matcher since it was created."""

    lookups: int = 0  # one per pair of an event and gate (domain and type) that may have it
    touched: int = 0  # entries visited because they share a pair with an event
    evaluated: int = 0  # evaluated tests; a test of several conjunctions counts once per event
    compared: int = 0  # signatures compared with an event's fields (OIF-25)
    shadowed: int = 0  # tests whose result followed from another's (OIF-28)
    rebuilds: int = 0  # rebuilt parts of the structure; see each strategy


def summed(parts: Sequence[Counters]) -> Counters:
    """Return the sum of counters."""
    return Counters(
        sum(part.lookups for part in parts),
        sum(part.touched for part in parts),
        sum(part.evaluated for part in parts),
        sum(part.compared for part in parts),
        sum(part.shadowed for part in parts),
        sum(part.rebuilds for part in parts),
    )


class Matcher(Protocol):
    """A set of specs that finds those that an event matches. All strategies return the same set, in
    any order.

    Concurrency: none. One task owns a matcher; `match` never awaits and has no side effects but
    counters.
    """

    @property
    def counters(self) -> Counters: ...

    def add(self, id: int, spec: Spec) -> None:
        """Add a spec in place; it matches from the next event on (SUN-11). It replaces another spec
        under that number.
        """

    def remove(self, id: int) -> None:
        """Remove a number; do nothing if it does not exist."""

    def match(self, event: Event) -> list[int]:
        """Return the numbers of all specs that the event matches, each once."""

    def __len__(self) -> int:
        """Return the number of specs."""


@runtime_checkable
class FilterMatching(Protocol):
    """A matcher that supports filters of several specs itself."""

    def put(self, id: int, specs: Specs) -> None:
        """Add a filter; `match` returns it once if any of its specs match."""
