"""Strategy `scan`: evaluate every spec for every event. Slow, but so simple that it is the oracle
for the other strategies. Plain module.
"""

from typing import Protocol

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.pairs import Pairs
from registrations.matching.matcher import Counters
from registrations.matching.spec import Spec


class ScanMatcher:
    """All specs in a dictionary, each evaluated on its own."""

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self.hierarchy = hierarchy
        self._specs: dict[int, Spec] = {}

    def add(self, id: int, spec: Spec) -> None:
        self._specs[id] = spec

    def remove(self, id: int) -> None:
        self._specs.pop(id, None)

    def match(self, event: Event) -> list[int]:
        self.counters.touched += len(self._specs)
        values = EventValues(event)
        return [id for id, spec in self._specs.items() if matches(spec, values, self)]

    def __len__(self) -> int:
        return len(self._specs)


class Evaluating(Protocol):
    """A matcher that evaluates whole specs."""

    counters: Counters
    hierarchy: TypeHierarchy


def matches(spec: Spec, values: EventValues, by: Evaluating) -> bool:
    """Return whether an event matches a spec; evaluate its tests up to the first that fails."""
    if not Pairs(*spec[:4]).matches(values.event):
        return False
    for test in spec.tests:
        by.counters.evaluated += 1
        if not holds(test, values, by.hierarchy):
            return False
    return True
