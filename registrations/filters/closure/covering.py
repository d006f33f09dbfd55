"""Which filter covers which: every event that the one lets through passes the other one too, by the
attributes that it constrains and by their values (decisions 15 and 23 of the requirements).
Plain module.

`(> x 5)` covers `(> x 7)`. The answer is sound: True is certain, False says "not known". FOX's own
relation is by names alone: `constraint.py`.
"""

from collections.abc import Collection

from registrations.filters.ast import Compare, Const, Node, Not, Path
from registrations.filters.closure.implied import follows, has_member, looked_at, plain
from registrations.filters.normal import Alternative, Form, normal

_TESTS_AT_ONCE = 16  # that are found among others in the time that comparing two takes


class Known:
    """One alternative, made ready to be compared with many."""

    __slots__ = ("_by_path", "facts", "parts", "tests")

    def __init__(self, parts: Alternative) -> None:
        self.parts = parts
        self.tests = frozenset(one for part in parts for one in plain(part))
        self.facts = self.tests | {
            Not(Compare("=", *fact_sides))
            for fact in self.tests
            if (fact_sides := _unequal(fact)) is not None
        }
        self._by_path: dict[Path, list[Node]] | None = None

    def covers(self, other: "Known", work: "Work | None" = None) -> bool:
        """True if every event that is the other is surely this one as well; False too where finding
        out would be more work than is left.
        """
        work = work or Work()
        if not work.take(1 + len(self.tests) // _TESTS_AT_ONCE):
            return False
        return all(_follows(test, other, work) for test in self.tests - other.facts)

    def about(self, test: Node) -> Collection[Node]:
        """The facts from which a test may follow: they look at what it looks at."""
        if self._by_path is None:
            self._by_path = {}
            for fact in self.facts:
                for path in set(looked_at(fact)):
                    self._by_path.setdefault(path, []).append(fact)
        paths = set(looked_at(test))
        if len(paths) == 1:
            return self._by_path.get(paths.pop(), ())
        return {fact for path in paths for fact in self._by_path.get(path, ())}


class Work:
    """Tests that may still be compared; without a number any."""

    def __init__(self, left: int | None = None) -> None:
        self._left = left

    @property
    def done(self) -> bool:
        return self._left is not None and self._left <= 0

    def take(self, count: int) -> bool:
        """False if that is more than there is left."""
        if self._left is None:
            return True
        self._left -= count
        return self._left >= 0


def covers(one: Node, other: Node) -> bool:
    """True if whatever `other` lets through surely passes `one`. Raises FilterTooLarge."""
    return form_covers(normal(one), normal(other))


def form_covers(one: Form, other: Form) -> bool:
    """The same of normal forms."""
    wide = [Known(parts) for parts in one]
    return all(any(each.covers(known) for each in wide) for known in map(Known, other))


def _follows(test: Node, known: Known, work: Work) -> bool:
    facts = known.about(test)
    if not work.take(len(facts)):
        return False
    if any(follows(test, fact) for fact in facts):
        return True
    sides = _unequal(test)
    if sides is None:
        return False
    equal = Not(Compare("=", *sides))
    there = any(has_member(sides[0], fact) for fact in facts)
    return there and any(follows(equal, fact) for fact in facts)


def _unequal(test: Node) -> tuple[Path, Const] | None:
    """The sides of `(!= path constant)`, which says: there is a value, and none that is equal."""
    match test:
        case Compare("!=", Path() as path, Const() as value):
            return path, value
    return None
