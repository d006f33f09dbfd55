"""Strategy `memo`: the subscriptions that events with the same fields may match are computed once
(OIF-26). Plain module.
"""

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.matching.matcher import Counters
from registrations.matching.scan import matches
from registrations.matching.signatures import Signatures, Signed
from registrations.matching.spec import Spec

FIELD_SETS_MAX = 1_024  # that are cached; producers choose the fields


class MemoMatcher:
    """A cache of the specs whose signature is in a set of fields, cleared by every change.
    `counters.compared` counts signatures, `counters.rebuilds` new sets of fields.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self.hierarchy = hierarchy
        self._signatures = Signatures()
        self._candidates: dict[int, list[Signed]] = {}

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        self._signatures.add(id, spec)
        self._candidates.clear()

    def remove(self, id: int) -> None:
        if self._signatures.remove(id) is not None:
            self._candidates.clear()

    def match(self, event: Event) -> list[int]:
        given = self._signatures.given(event.attributes)
        candidates = self._candidates.get(given)
        if candidates is None:
            candidates = self._learn(given)
        self.counters.touched += len(candidates)
        values = EventValues(event)
        return [each.id for each in candidates if matches(each.spec, values, self)]

    def _learn(self, given: int) -> list[Signed]:
        if len(self._candidates) >= FIELD_SETS_MAX:
            self._candidates.clear()
        signed = self._signatures.specs.values()
        found = self._candidates[given] = [each for each in signed if each.may_match(given)]
        self.counters.compared += len(signed)
        self.counters.rebuilds += 1
        return found

    def __len__(self) -> int:
        return len(self._signatures.specs)
