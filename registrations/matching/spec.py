"""A conjunction, the form in which matchers take what a registration asks for: a gate, pairs and
tests, all of which must hold. Plain module.

It knows nothing of tickets, streams or clients: a matcher gives each spec a number of its caller's.
"""

from typing import NamedTuple

from registrations.filters.ast import Compare, Const, Node, OfType, Path, Scalar
from registrations.filters.normal import NormalForm, normal, printed_parts
from registrations.filters.pairs import Pairs

_GATE = ("domain", "type", "application")


class Spec(NamedTuple):
    """A domain, a type and an application (None: any), pairs of a path and a value, and whatever
    else is to be verified.

    Two specs that ask for the same may differ as tuples (the order of pairs, 1 and 1.0); and in
    Python `1 == True`, so specs are compared through `registrations.matching.atoms.atoms_of`.
    """

    domain: str | None = None
    type: str | None = None
    pairs: tuple[tuple[str, Scalar], ...] = ()
    application: str | None = None
    tests: tuple[Node, ...] = ()  # in one order, each once


Specs = tuple[Spec, ...]  # of one filter: an event matches if it matches one of them


def spec_of(pairs: Pairs) -> Spec:
    """The spec of a registration in the pairs language."""
    return Spec(pairs.domain, pairs.type, pairs.attributes, pairs.application)


def specs_of(node: Node) -> Specs:
    """The specs of a filter; none: it never matches. Raises FilterTooLarge."""
    return specs_of_form(normal(node))


def specs_of_form(form: NormalForm) -> Specs:
    """Of a filter whose normal form is known."""
    roles: dict[int, _Role] = {}  # alternatives have their parts in common
    return tuple(_spec(alternative, roles) for alternative in printed_parts(form))


class _Role(NamedTuple):
    """What a part of a conjunction becomes: a pair, or a piece of the gate, or a test."""

    pair: tuple[str, Scalar] | None = None
    gate: tuple[str, str] | None = None
    tested: bool = False  # beside the gate too


def _role_of(part: Node) -> _Role:
    """What is no equality of an attribute and no part of the gate becomes a test; so does an empty
    text of the envelope, which is missing to a filter and a domain to a gate.
    """
    match part:
        case Compare("=", Path(name, "attributes"), Const(value)):
            return _Role(pair=(name, value))
        case Compare("=", Path(name, "envelope"), Const(str(value))) if value and name in _GATE:
            return _Role(gate=(name, value))
        case OfType(str(domain), type):
            return _Role(gate=("domain", domain), tested=type is not None)
    return _Role(tested=True)


def _spec(alternative: list[tuple[str, Node]], roles: dict[int, _Role]) -> Spec:
    gate: dict[str, str] = {}
    pairs: list[tuple[str, Scalar]] = []
    tests: list[Node] = []
    for _, part in alternative:
        role = roles.get(id(part))
        if role is None:
            role = roles[id(part)] = _role_of(part)
        if role.pair is not None:
            pairs.append(role.pair)
            continue
        name, value = role.gate or ("", "")
        if role.tested or gate.get(name, value) != value:
            tests.append(part)  # of two applications the second
        if name:
            gate.setdefault(name, value)
    return Spec(
        gate.get("domain"), gate.get("type"), tuple(pairs), gate.get("application"), tuple(tests)
    )
