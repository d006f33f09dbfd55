"""Covering of filters: a filter covers another one if it matches every event that the other one
matches, by attributes and values (decisions 15 and 23 of the requirements). Plain module.

`(> x 5)` covers `(> x 7)`. The result is sound: True is certain, False means "not known". FOX's own
relation compares names only: `fox_constraint.py`.
"""

from collections.abc import Collection

from registrations.filters.ast import Compare, Const, Node, Not, Path
from registrations.filters.closure.implied import (
    canonical_tests,
    follows,
    paths_read,
    requires_value,
)
from registrations.filters.normal import Alternative, NormalForm, normal

_TESTS_AT_ONCE = 16  # set look-ups in the time of one comparison


class PreparedAlternative:
    """One alternative, prepared for comparisons with many others."""

    __slots__ = ("_by_path", "facts", "parts", "tests")

    def __init__(self, parts: Alternative) -> None:
        self.parts = parts
        self.tests = frozenset(one for part in parts for one in canonical_tests(part))
        self.facts = self.tests | {
            Not(Compare("=", *fact_sides))
            for fact in self.tests
            if (fact_sides := _unequal(fact)) is not None
        }
        self._by_path: dict[Path, list[Node]] | None = None

    def covers(self, other: "PreparedAlternative", work: "ComparisonBudget | None" = None) -> bool:
        """Return whether this alternative certainly matches every event that the other one matches;
        False also if the remaining work does not suffice to find out.
        """
        work = work or ComparisonBudget()
        if not work.take(1 + len(self.tests) // _TESTS_AT_ONCE):
            return False
        return all(_follows(test, other, work) for test in self.tests - other.facts)

    def about(self, test: Node) -> Collection[Node]:
        """Return the facts that may imply a test: those on its paths."""
        if self._by_path is None:
            self._by_path = {}
            for fact in self.facts:
                for path in set(paths_read(fact)):
                    self._by_path.setdefault(path, []).append(fact)
        paths = set(paths_read(test))
        if len(paths) == 1:
            return self._by_path.get(paths.pop(), ())
        return {fact for path in paths for fact in self._by_path.get(path, ())}


class ComparisonBudget:
    """A bound on the number of compared tests; None is no bound."""

    def __init__(self, left: int | None = None) -> None:
        self._left = left

    @property
    def done(self) -> bool:
        return self._left is not None and self._left <= 0

    def take(self, count: int) -> bool:
        """Take `count` comparisons; return False if fewer remain."""
        if self._left is None:
            return True
        self._left -= count
        return self._left >= 0


def covers(one: Node, other: Node) -> bool:
    """Return whether `one` certainly matches all that `other` matches. Raises FilterTooLarge."""
    return form_covers(normal(one), normal(other))


def form_covers(one: NormalForm, other: NormalForm) -> bool:
    """Return the same for normal forms."""
    wide = [PreparedAlternative(parts) for parts in one]
    return all(
        any(each.covers(known) for each in wide) for known in map(PreparedAlternative, other)
    )


def _follows(test: Node, known: PreparedAlternative, work: ComparisonBudget) -> bool:
    facts = known.about(test)
    if not work.take(len(facts)):
        return False
    if any(follows(test, fact) for fact in facts):
        return True
    sides = _unequal(test)
    if sides is None:
        return False
    equal = Not(Compare("=", *sides))
    there = any(requires_value(sides[0], fact) for fact in facts)
    return there and any(follows(equal, fact) for fact in facts)


def _unequal(test: Node) -> tuple[Path, Const] | None:
    """Return the sides of `(!= path constant)`: there is a value, and none is equal."""
    match test:
        case Compare("!=", Path() as path, Const() as value):
            return path, value
    return None
