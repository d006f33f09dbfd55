"""Specs, the compiled form of filters that matchers take: conjunctions of a gate, pairs and tests.
Plain module.

A spec has no id, stream or client; the caller of a matcher gives it a number.
"""

from typing import NamedTuple

from eventhub.event.filterable import is_in_data
from registrations.filters.ast import Compare, Const, Node, OfType, Path, Scalar
from registrations.filters.normal import NormalForm, normal, printed_parts
from registrations.filters.pairs import Pairs
from registrations.filters.paths import reads_data as node_reads_data

_GATE = ("domain", "type", "application")


class Spec(NamedTuple):
    """A conjunction of a domain, a type, an application (None: any), pairs of a path and a value,
    and other tests.

    Equivalent specs may differ as tuples (the order of pairs, 1 and 1.0), and in Python
    `1 == True`, so specs are compared by `registrations.matching.atoms.atoms_of`.
    """

    domain: str | None = None
    type: str | None = None
    pairs: tuple[tuple[str, Scalar], ...] = ()
    application: str | None = None
    tests: tuple[Node, ...] = ()  # sorted, each once


Specs = tuple[Spec, ...]  # of one filter: an event matches if it matches one of them


def spec_of(pairs: Pairs) -> Spec:
    """Return the spec of a filter in the pairs language."""
    return Spec(pairs.domain, pairs.type, pairs.attributes, pairs.application)


def specs_of(node: Node) -> Specs:
    """Return the specs of a filter; none if it never matches. Raises FilterTooLarge."""
    return specs_of_form(normal(node))


def specs_of_form(form: NormalForm) -> Specs:
    """Return the specs of a normal form."""
    roles: dict[int, _Role] = {}  # alternatives share parts
    return tuple(_spec(alternative, roles) for alternative in printed_parts(form))


def reads_data(specs: Specs) -> bool:
    """Return whether a filter reads `data`, the body of an event."""
    return any(
        any(is_in_data(name) for name, _ in spec.pairs) or any(map(node_reads_data, spec.tests))
        for spec in specs
    )


class _Role(NamedTuple):
    """The role of a part of a conjunction: a pair, a part of the gate, or a test."""

    pair: tuple[str, Scalar] | None = None
    gate: tuple[str, str] | None = None
    tested: bool = False  # also with a gate


def _role_of(part: Node) -> _Role:
    """Return the role of a part. It is a test unless it is an equality of an attribute or a part of
    the gate; so is an empty text of the envelope, which a filter treats as missing and a gate as a
    value.
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
            tests.append(part)  # a second application
        if name:
            gate.setdefault(name, value)
    return Spec(
        gate.get("domain"), gate.get("type"), tuple(pairs), gate.get("application"), tuple(tests)
    )
