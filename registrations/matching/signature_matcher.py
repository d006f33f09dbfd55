"""Strategy `sig`: the signature of a subscription is compared with the event's fields before it is
evaluated (OIF-25). Plain module.
"""

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.matching.matcher import Counters
from registrations.matching.scan import matches
from registrations.matching.signatures import Signatures
from registrations.matching.spec import Spec


class SigMatcher:
    """A list of specs with signatures. `counters.compared` counts signatures, `counters.touched`
    the specs whose signature passed, which are evaluated.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self.hierarchy = hierarchy
        self._signatures = Signatures()

    def add(self, id: int, spec: Spec) -> None:
        self._signatures.remove(id)
        self._signatures.add(id, spec)

    def remove(self, id: int) -> None:
        self._signatures.remove(id)

    def match(self, event: Event) -> list[int]:
        given = self._signatures.given(event.attributes)
        signed = self._signatures.specs.values()
        candidates = [each for each in signed if each.may_match(given)]
        self.counters.compared += len(signed)
        self.counters.touched += len(candidates)
        values = EventValues(event)
        return [each.id for each in candidates if matches(each.spec, values, self)]

    def __len__(self) -> int:
        return len(self._signatures.specs)
