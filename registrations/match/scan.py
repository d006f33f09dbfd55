"""Strategy `scan`: every spec against every event. Slow, and so simple that it is the oracle the
other strategies are compared with. Plain.
"""

from eventhub.event.envelope import Event
from registrations.lang.pairs import Pairs
from registrations.match.matcher import Counters
from registrations.match.spec import Spec


class ScanMatcher:
    """All specs in a dictionary, each evaluated as its language says."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._pairs: dict[int, Pairs] = {}

    def add(self, id: int, spec: Spec) -> None:
        self._pairs[id] = Pairs(*spec)

    def remove(self, id: int) -> None:
        self._pairs.pop(id, None)

    def match(self, event: Event) -> list[int]:
        self.counters.touched += len(self._pairs)
        return [id for id, pairs in self._pairs.items() if pairs.matches(event)]

    def __len__(self) -> int:
        return len(self._pairs)
