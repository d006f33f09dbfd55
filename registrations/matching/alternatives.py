"""Filters of several specs on top of a strategy, which matches single specs: an event matches a
filter if it matches one of its specs, and the filter is returned once. Plain module.
"""

from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable
from registrations.matching.matcher import Counters, FilterMatching, Matcher
from registrations.matching.spec import Spec, Specs, reads_data

FIRST = -(1 << 62)  # the first number of a spec of several; they never reach zero


class FilterMatcher:
    """A strategy, and the filter of each of its numbers.

    The only spec of a filter has the filter's number; each of several has a negative number. These
    ascend, so that a strategy with sorted numbers appends a new one at the end. Concurrency: none,
    as for the strategy.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._whole = matcher if isinstance(matcher, FilterMatching) else None  # slow to find out
        self._numbers: dict[int, tuple[int, ...]] = {}  # of each filter without exactly one spec
        self._filters: dict[int, int] = {}  # negative number -> filter
        self._next = FIRST
        self._reading_data: set[int] = set()  # the filters that read `data`

    @property
    def counters(self) -> Counters:
        return self._matcher.counters

    def add(self, id: int, specs: Specs) -> None:
        """Add a filter under a number from 0 on; it replaces another one under that number."""
        self.remove(id)
        if reads_data(specs):
            self._reading_data.add(id)
        if self._whole is not None:
            self._whole.put(id, specs)
            return
        if len(specs) == 1:
            self._matcher.add(id, specs[0])
            return
        self._numbers[id] = tuple(self._add(id, spec) for spec in specs)

    def remove(self, id: int) -> None:
        """Remove a number; do nothing if it does not exist."""
        self._reading_data.discard(id)
        numbers = self._numbers.pop(id, None)
        if numbers is None:
            self._matcher.remove(id)
            return
        for number in numbers:
            self._matcher.remove(number)
            del self._filters[number]

    def match(self, event: Event) -> list[int]:
        """Return the numbers of all filters that the event matches, each once."""
        if event.filterable_data and self._reading_data:
            event = filterable(event)
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
