"""Conditions: the tests of conjunctions that are not pairs. Each is evaluated at most once per
event, however many conjunctions have it. Plain module.
"""

from collections.abc import Iterable

from eventhub.event.envelope import Event
from registrations.filters.ast import Node, OfType
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.paths import attributes_of


class Condition:
    """A test, and the number of conjunctions that have it."""

    __slots__ = ("node", "number", "users")

    def __init__(self, number: int, node: Node) -> None:
        self.number = number  # sorts the tests of a conjunction, so that equal sets are found
        self.node = node
        self.users = 0


class Conditions:
    """The distinct tests of a matcher."""

    def __init__(self, hierarchy: TypeHierarchy) -> None:
        self.hierarchy = hierarchy
        self.known: dict[Node, Condition] = {}
        self._made = 0

    def of(self, nodes: Iterable[Node]) -> tuple[Condition, ...]:
        """Return the tests of a conjunction, sorted by number."""
        found = {self._test(node) for node in nodes}
        return tuple(sorted(found, key=lambda test: test.number))

    def use(self, tests: tuple[Condition, ...]) -> None:
        for test in tests:
            test.users += 1

    def forget(self, tests: tuple[Condition, ...]) -> None:
        for test in tests:
            test.users -= 1
            if not test.users:
                del self.known[test.node]

    def __len__(self) -> int:
        return len(self.known)

    def _test(self, node: Node) -> Condition:
        test = self.known.get(node)
        if test is None:
            self._made += 1
            test = self.known[node] = Condition(self._made, node)
        return test


class EventTestResults:
    """The tests evaluated for one event."""

    __slots__ = ("_hierarchy", "_types", "_values", "_verdicts", "evaluated")

    def __init__(self, tests: Conditions, event: Event) -> None:
        self.evaluated = 0
        self._values = EventValues(event)
        self._hierarchy = tests.hierarchy
        self._types: tuple[str, ...] | None = None
        self._verdicts: dict[Condition, bool] = {}

    @property
    def types(self) -> tuple[str, ...]:
        """The type of the event and its supertypes."""
        if self._types is None:
            self._types = self._hierarchy(self._values.event)
        return self._types

    def passes(self, tests: tuple[Condition, ...]) -> bool:
        """Return whether all tests hold; evaluate up to the first that does not."""
        for test in tests:
            verdict = self._verdicts.get(test)
            if verdict is None:
                self.evaluated += 1
                verdict = self._verdicts[test] = holds(test.node, self._values, self._hierarchy)
            if not verdict:
                return False
        return True


NO_TRIAL = EventTestResults(Conditions(no_supertypes), Event("", "", {}))


def anchor_of(nodes: Iterable[Node]) -> str | None:
    """Return an attribute that one of the tests requires; None if there is none."""
    return next((name for node in nodes for name in attributes_of(node)), None)


def type_of(nodes: Iterable[Node]) -> str | None:
    """Return a type that one of the tests requires of the event or its supertypes; None if there is
    none.
    """
    types = (node.type for node in nodes if isinstance(node, OfType) and not node.below)
    return next((type for type in types if type is not None), None)
