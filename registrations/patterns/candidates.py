"""The events among which a pattern is searched, and the matches that the search finds. Plain
module.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterator
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

from eventhub.base import limits
from registrations.patterns.values import BoundEvent, BoundValue

BY_ORDER = attrgetter("order")
_EVALUATION_STEPS = 8
COPIES_PER_STEP = 32  # events of a sequence
T = TypeVar("T")


class OpenSequence(NamedTuple):
    """A sequence that matched and takes events until the part around it matches. `first`: its first
    event, as an index into the events of its element.
    """

    element: int
    first: int
    least: int
    most: int | None


BoundPart = BoundValue | OpenSequence
Bound = tuple[tuple[str, BoundPart], ...]  # variables in the order of the text


class Found(NamedTuple):
    """A possible match. `end`: the order of the event that completes it, or its start if it needs
    no event.
    """

    end: int
    bound: Bound


class StepsExceeded(Exception):
    """The search took more steps than the limit."""


class Candidates:
    """The events that each element of a pattern took, while one event is matched. `is_due`: the
    search should pause, so that others may run.
    """

    __slots__ = ("_pause_at", "events", "is_due", "steps")

    def __init__(self, events: list[list[BoundEvent]]) -> None:
        self.events = events
        self.steps = limits.PATTERN_STEPS_MAX
        self.is_due = False
        self._pause_at = self.steps - limits.PATTERN_STEPS_AT_ONCE

    def count(self, steps: int = 1) -> None:
        """Count the steps of one candidate. Raises StepsExceeded."""
        self.steps -= steps
        if self.steps < self._pause_at:
            if self.steps < 0:
                raise StepsExceeded
            self.is_due = True

    def pause(self) -> Iterator[None]:
        """Yield None, for the search to pause."""
        self.is_due = False
        self._pause_at = self.steps - limits.PATTERN_STEPS_AT_ONCE
        yield

    def taken(self, run: OpenSequence, end: int) -> tuple[BoundEvent, ...]:
        """Return the events of a sequence when the part around it ends: those that it needs, and
        those before the end up to its most.
        """
        events = self.events[run.element]
        before = bisect_right(events, end - 1, key=BY_ORDER)
        stop = max(before, run.first + run.least)
        if run.most is not None:
            stop = min(stop, run.first + run.most)
        self.count((stop - run.first) // COPIES_PER_STEP)
        return tuple(islice(events, run.first, stop))


def closed(candidates: Candidates, bound: Bound, end: int) -> Bound:
    """Return bindings in which every sequence is complete, the part around it having ended."""
    return tuple(
        (name, candidates.taken(value, end) if isinstance(value, OpenSequence) else value)
        for name, value in bound
    )


def bindings_of(candidates: Candidates, found: Found) -> dict[str, BoundValue]:
    """Return the bindings of a match, its sequences complete."""
    return cast(dict[str, BoundValue], dict(closed(candidates, found.bound, found.end)))


def evaluation_steps(bindings: dict[str, BoundValue]) -> int:
    """Return the steps that it takes to evaluate a condition or an event."""
    lengths = (len(one) for one in bindings.values() if isinstance(one, tuple))
    return _EVALUATION_STEPS + sum(lengths)


def unpaused(search: Generator[None, None, T]) -> T:
    """Run a search to its end and return its result."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            return cast(T, end.value)
