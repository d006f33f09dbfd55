"""A small immutable index in memory of specs that are found by keys; removed specs get tombstones.
Plain module.
"""

from collections.abc import Mapping
from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy
from registrations.match_index.engines.available import new_engine
from registrations.match_index.format.assemble import assemble
from registrations.match_index.format.columns import EntryCollector
from registrations.match_index.format.index import positions_in
from registrations.match_index.format.names import ALL_BITS, value_tail
from registrations.match_index.format.shard import in_memory
from registrations.match_index.format.terms import keys_of_test
from registrations.matching.conditions import Condition, Conditions, EventTestResults
from registrations.matching.spec import Spec


class KeyedSpec(NamedTuple):
    """A spec whose tests are keys of an index, and its other tests."""

    spec: Spec
    rest: tuple[Node, ...]


def keyed(spec: Spec) -> KeyedSpec | None:
    """Separate the tests that are keys from the others; return None if an index has no benefit: no
    test is a key, or a pair has no name.
    """
    tests = tuple(test for test in spec.tests if keys_of_test(test, spec.domain) is not None)
    if not tests or any(value_tail(value) is None for _, value in spec.pairs):
        return None
    return KeyedSpec(
        spec._replace(tests=tests), tuple(one for one in spec.tests if one not in tests)
    )


class MemoryIndex:
    """An index of specs by number. `specs`: the live ones.

    Concurrency: one task, as of any matcher.
    """

    def __init__(
        self,
        specs: Mapping[int, KeyedSpec],
        tests: Conditions,
        hierarchy: TypeHierarchy,
        engine: str,
    ) -> None:
        self.specs = dict(specs)
        self.built = len(specs)
        self._tests = tests
        self._rest: dict[int, tuple[Condition, ...]] = {}
        gathering = EntryCollector()
        for id, (spec, rest) in self.specs.items():
            gathering.add(id, (spec,), {})
            if rest:
                self._rest[id] = tests.of(rest)
                tests.use(self._rest[id])
        self._shard = in_memory(assemble(gathering.drain(), ALL_BITS))
        self.engine = new_engine(engine, self._shard, hierarchy)

    def __len__(self) -> int:
        return len(self.specs)

    def match(self, event: Event, trial: EventTestResults) -> list[int]:
        """Return the numbers that match. `trial`: of the conditions of this index."""
        found: list[int] = self.engine.match(event).tolist()
        rest = self._rest
        if not found or not rest:
            return found
        return [id for id in found if id not in rest or trial.passes(rest[id])]

    def remove(self, id: int) -> None:
        """Remove a live number."""
        del self.specs[id]
        self._forget(id)
        for position in positions_in(self._shard, id):
            self.engine.mark_removed(position)

    def end(self) -> None:
        """Release the conditions that it shares with other indexes."""
        for id in [*self._rest]:
            self._forget(id)

    def _forget(self, id: int) -> None:
        rest = self._rest.pop(id, None)
        if rest is not None:
            self._tests.forget(rest)
