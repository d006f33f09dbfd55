"""Filters of several specs over any strategy, which knows single ones: an event matches a filter if
it matches one of its specs, and is told once. Plain module.
"""

from eventhub.event.envelope import Event
from registrations.matching.matcher import Counters, Matcher, TakesFilters
from registrations.matching.spec import Spec, Specs

FIRST = -(1 << 62)  # the first number of a spec that is not alone: none ever comes to zero


class FilterMatcher:
    """A strategy, and which filter each of its numbers is of.

    The one spec of a filter has the filter's own number; of several each has a number below zero.
    These rise, so that a strategy which keeps numbers in order puts a new one at the end.
    Concurrency: none, as for the strategy.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._numbers: dict[int, tuple[int, ...]] = {}  # of each filter that has not just one spec
        self._filters: dict[int, int] = {}  # whose number below zero that is
        self._next = FIRST

    @property
    def counters(self) -> Counters:
        return self._matcher.counters

    def add(self, id: int, specs: Specs) -> None:
        """Take a filter in under a number from 0 on; another one under that number is replaced."""
        self.remove(id)
        if isinstance(self._matcher, TakesFilters):
            self._matcher.put(id, specs)
            return
        if len(specs) == 1:
            self._matcher.add(id, specs[0])
            return
        self._numbers[id] = tuple(self._add(id, spec) for spec in specs)

    def remove(self, id: int) -> None:
        """Forget a number; nothing happens if it is not there."""
        numbers = self._numbers.pop(id, None)
        if numbers is None:
            self._matcher.remove(id)
            return
        for number in numbers:
            self._matcher.remove(number)
            del self._filters[number]

    def match(self, event: Event) -> list[int]:
        """The numbers of all filters that the event matches, each once."""
        found = self._matcher.match(event)
        if not self._filters or min(found, default=0) >= 0:
            return found
        filters = self._filters
        several = {filters[id] for id in found if id < 0}
        return [*several, *[id for id in found if id >= 0]]

    def __len__(self) -> int:
        return len(self._matcher) - len(self._filters) + len(self._numbers)

    def _add(self, id: int, spec: Spec) -> int:
        number = self._next
        self._next += 1
        self._filters[number] = id
        self._matcher.add(number, spec)
        return number
