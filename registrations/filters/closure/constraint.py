"""FOX's relation of constraints: which of two interests in one type of event asks for more.
Plain module.

It looks at names alone, never at values. Whether everything that one filter lets through passes the
other one too is another question, with an answer of its own: `covering.py`.
"""

from typing import NamedTuple

from registrations.filters.ast import Compare, Const, Node, Not, OfType, Path
from registrations.filters.normal import Alternative, normal
from registrations.filters.paths import all_paths

Named = tuple[str | None, str | None, bool]  # domain, type, whether those below it are meant


class Constraint(NamedTuple):
    """What FOX's relation knows of a filter. `types`: of each alternative the one it names."""

    types: frozenset[Named]
    attributes: frozenset[str]  # paths that it tests, `not` and the sides of a sum included


def stronger(one: Node, other: Node) -> bool:
    """True if `one` constrains more than `other`: events of the same type, by all the attributes
    that the other names, and more (FOX-16, paper 4.6).

    Transitive, and never both ways. There is no relation between other types, equal sets of
    attributes, and sets of which none holds the other; nor with a filter that never matches.
    """
    more, less = constraint_of(one), constraint_of(other)
    if more is None or less is None:
        return False
    return more.types == less.types and more.attributes > less.attributes


def constraint_of(node: Node) -> Constraint | None:
    """From the normal form, so that what is written twice or says nothing does not count; None if
    the filter never matches.
    """
    form = normal(node)
    if not form:
        return None
    tests = (part.item if isinstance(part, Not) else part for parts in form for part in parts)
    paths = (path for test in tests for path in all_paths(test))
    names = (path.name for path in paths if path.space == "attributes")
    return Constraint(frozenset(map(_type_of, form)), frozenset(names))


def _type_of(parts: Alternative) -> Named:
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
