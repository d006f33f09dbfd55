"""FOX's constraint relation: which of two filters of one event type constrains more. Plain module.

It compares names only, never values. Whether one filter matches everything that the other one
matches is a different question: `covers_by_value.py`.
"""

from typing import NamedTuple

from registrations.filters.ast import Compare, Const, Node, Not, OfType, Path
from registrations.filters.normal import Alternative, normal
from registrations.filters.paths import all_paths

TypeName = tuple[str | None, str | None, bool]  # domain, type, whether it is the types below it


class Constraint(NamedTuple):
    """A filter in FOX's relation. `types`: the type of each alternative."""

    types: frozenset[TypeName]
    attributes: frozenset[str]  # tested paths, also below `not` and in arithmetic


def stronger(one: Node, other: Node) -> bool:
    """Return whether `one` constrains more than `other`: events of the same type, by all attributes
    of the other and at least one more (FOX-16, paper 4.6).

    Transitive and asymmetric. Filters of different types, with equal or incomparable sets of
    attributes, or that never match are unrelated.
    """
    more, less = constraint_of(one), constraint_of(other)
    if more is None or less is None:
        return False
    return more.types == less.types and more.attributes > less.attributes


def constraint_of(node: Node) -> Constraint | None:
    """Return the constraint of a filter, None if it never matches. It is taken from the normal
    form, so that duplicates and tests without effect do not count.
    """
    form = normal(node)
    if not form:
        return None
    tests = (part.item if isinstance(part, Not) else part for parts in form for part in parts)
    paths = (path for test in tests for path in all_paths(test))
    names = (path.name for path in paths if path.space == "attributes")
    return Constraint(frozenset(map(_type_of, form)), frozenset(names))


def _type_of(parts: Alternative) -> TypeName:
    domain: str | None = None
    type: str | None = None
    below = False
    for part in sorted(parts, key=repr):
        match part:
            case Compare("=", Path("domain", "envelope"), Const(str(name))):
                domain = name
            case Compare("=", Path("type", "envelope"), Const(str(name))):
                type, below = name, False
            case OfType():
                domain = part.domain if part.domain is not None else domain
                if part.type is not None:
                    type, below = part.type, part.below
    return domain, type, below
