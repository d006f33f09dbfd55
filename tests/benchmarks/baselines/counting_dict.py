"""SUN's counting index in plain dictionaries, optimized within its steps. Plain.

Nothing can be removed, values are compared as Python does, and a registration always has domain and
type.
"""

from eventhub.event.envelope import Event
from registrations.matching.matcher import Counters
from registrations.matching.spec import Spec


class CountingDict:
    """The index: lists of numbers by domain, type, name and value; counters and totals in two
    lists.
    """

    def __init__(self) -> None:
        self.counters = Counters()
        self._index: dict[tuple[object, ...], list[int]] = {}
        self._no_pairs: dict[tuple[object, ...], list[int]] = {}
        self._counts: list[int] = []
        self._totals: list[int] = []

    def add(self, id: int, spec: Spec) -> None:
        domain, type, pairs = spec.domain, spec.type, spec.pairs
        if id != len(self._totals):
            raise ValueError("numbers come in order")
        self._totals.append(len(pairs))
        self._counts.append(0)
        if not pairs:
            self._no_pairs.setdefault((domain, type), []).append(id)
        for name, value in pairs:
            self._index.setdefault((domain, type, name, value), []).append(id)

    def remove(self, id: int) -> None:
        raise NotImplementedError

    def match(self, event: Event) -> list[int]:
        domain, type = event.domain, event.type
        index, counts, totals = self._index, self._counts, self._totals
        due = list(self._no_pairs.get((domain, type), ()))
        visited: list[int] = []
        for name, value in event.attributes.items():
            for id in index.get((domain, type, name, value), ()):
                count = counts[id] + 1
                counts[id] = count
                visited.append(id)
                if count == totals[id]:
                    due.append(id)
        for id in visited:
            counts[id] = 0
        return due

    def __len__(self) -> int:
        return len(self._totals)
