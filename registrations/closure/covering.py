"""Which filter covers which: every event that the one lets through passes the other one too, by the
attributes that it constrains and by their values (decisions 15 and 23 of the requirements). Plain.

`(> x 5)` covers `(> x 7)`. The answer is sound: True is certain, False says "not known". FOX's own
relation is by names alone: `constraint.py`.
"""

from registrations.closure.implied import follows, has_member, plain
from registrations.lang.ast import Compare, Const, Node, Not, Path
from registrations.lang.normal import Alternative, Form, normal


class Known:
    """One alternative, made ready to be compared with many."""

    __slots__ = ("facts", "parts", "tests")

    def __init__(self, parts: Alternative) -> None:
        self.parts = parts
        self.tests = frozenset(one for part in parts for one in plain(part))
        self.facts = self.tests | {
            Not(Compare("=", *fact_sides))
            for fact in self.tests
            if (fact_sides := _unequal(fact)) is not None
        }

    def covers(self, other: "Known") -> bool:
        """True if every event that is the other is surely this one as well."""
        rest = self.tests - other.facts
        return all(_follows(test, other.facts) for test in rest)


def covers(one: Node, other: Node) -> bool:
    """True if whatever `other` lets through surely passes `one`. Raises FilterTooLarge."""
    return form_covers(normal(one), normal(other))


def form_covers(one: Form, other: Form) -> bool:
    """The same of normal forms."""
    wide = [Known(parts) for parts in one]
    return all(any(each.covers(known) for each in wide) for known in map(Known, other))


def _follows(test: Node, facts: frozenset[Node]) -> bool:
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
