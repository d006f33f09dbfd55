"""Implication between single tests: `(> x 7)` implies `(> x 5)`. Plain module.

The rules are sound but incomplete. An attribute may be a list, of which each member counts, so two
tests of one attribute are never combined, and `(= x 1)` does not exclude `(= x 2)`; a field of the
envelope has one text.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import (
    FLIPPED,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Path,
    Scalar,
    Text,
)
from registrations.filters.evaluate import holds
from registrations.filters.paths import paths_of
from registrations.filters.values import number_of

_SINGLE_VALUED = ("domain", "type", "source", "name", "version", "node", "key", "id", "priority")
_DOMAIN = Path("domain", "envelope")
_TYPE = Path("type", "envelope")


def canonical_tests(test: Node) -> tuple[Node, ...]:
    """Split a test into tests that must all hold, each in canonical form: the constant on the
    right, a wildcard that is a prefix as a prefix, domain and type separate.
    """
    match test:
        case Not(item):
            one = canonical_tests(item)
            return (Not(one[0]),) if len(one) == 1 else (test,)
        case Compare(op, Const() as left, right):
            return (Compare(FLIPPED[op], _whole(right), _whole(left)),)
        case Compare(op, left, right):
            return (Compare(op, _whole(left), _whole(right)),)
        case In(path, values):
            return (In(path, tuple(_whole_const(value) for value in values)),)
        case Text("wildcard"):
            return (_simple(test),)
        case OfType(domain, type):
            return (*_of_domain(domain), *(() if type is None else (replace(test, domain=None),)))
    return (test,)


def follows(test: Node, fact: Node) -> bool:
    """Return whether the fact implies the test; both are `plain`."""
    if test == fact:
        return True
    match test, fact:
        case Not(item), Not(denied):
            return follows(denied, item)
        case Not(item), _:
            return _excludes(fact, item)
        case _, Not():
            return False
        case Exists(path), _:
            return path in paths_of(fact)
        case OfType(), _:
            return _of_type(test, fact)
    values = _values(fact)
    if values is not None and _path(test) == values.path:
        single = values.path.space == "envelope" and values.path.name in _SINGLE_VALUED
        if isinstance(test, Compare) and test.op == "!=" and not single:
            return False
        return all(_passes(test, value) for value in values.values)
    if isinstance(test, Text) and isinstance(fact, Text):
        return test.path == fact.path and _text_follows(test, fact)
    return _bound_follows(test, fact)


def paths_read(test: Node) -> Iterator[Path]:
    """Yield the paths of a test, also below `not`. A test implies only tests that share a path with
    it, and itself.
    """
    match test:
        case Not(item):
            yield from paths_read(item)
        case OfType():
            yield _TYPE
        case _:
            yield from paths_of(test)


def requires_value(path: Path, fact: Node) -> bool:
    """Return whether the fact implies that the path has a comparable value."""
    return not isinstance(fact, Exists | Not) and path in paths_of(fact)


class _Values(NamedTuple):
    """A path and the values of which it has at least one."""

    path: Path
    values: tuple[Scalar, ...]


def _values(fact: Node) -> _Values | None:
    match fact:
        case Compare("=", Path() as path, Const(value)):
            return _Values(path, (value,))
        case In(path, values):
            return _Values(path, tuple(value.value for value in values))
    return None


def _path(test: Node) -> Path | None:
    """Return the path of a test that one value decides."""
    match test:
        case Compare(_, Path() as path, Const()) | In(path) | Text(_, path):
            return path
    return None


def _passes(test: Node, value: Scalar) -> bool:
    """Return whether the value passes the test."""
    name = Path("x")
    match test:
        case Compare():
            test = replace(test, left=name)
        case In() | Text():
            test = replace(test, path=name)
    return holds(test, Event("", "", {"x": value}))


def _excludes(fact: Node, test: Node) -> bool:
    """Return whether no event passes both."""
    values = _values(fact)
    if values is None or values.path.space != "envelope" or values.path.name not in _SINGLE_VALUED:
        return False
    return _path(test) == values.path and not any(_passes(test, one) for one in values.values)


def _of_type(test: OfType, fact: Node) -> bool:
    """Return whether a fact about the type (or a supertype of it) implies a type test."""
    match fact:
        case Compare("=", Path("type", "envelope"), Const(str(name))) if name:
            below = False
        case OfType(None, str(name), below):
            pass
        case _:
            return False
    if test.type is None or test.domain is not None:
        return False
    if test.below:
        return name.startswith(test.type + ".") or (below and name == test.type)
    return not below and name == test.type


def _text_follows(test: Text, fact: Text) -> bool:
    if fact.op not in ("prefix", "suffix", "substring", "wildcard"):
        return False
    parts = fact.parts or (fact.text,)
    if test.op == "prefix":
        return fact.op in ("prefix", "wildcard") and parts[0].startswith(test.text)
    if test.op == "suffix":
        return fact.op in ("suffix", "wildcard") and parts[-1].endswith(test.text)
    return test.op == "substring" and any(test.text in part for part in parts)


class _Bound(NamedTuple):
    """A bound: the operand is beyond a constant."""

    operand: Operand
    large: bool
    value: int | float | str
    strict: bool


def _bound(test: Node) -> _Bound | None:
    match test:
        case Compare(
            "<" | "<=" | ">" | ">=" as op, operand, Const(int() | float() | str() as value)
        ):
            if not isinstance(value, bool):
                return _Bound(operand, op[0] == ">", value, len(op) == 1)
    return None


def _bound_follows(test: Node, fact: Node) -> bool:
    """Return whether one bound implies another. A numeric text is ordered with texts and with
    numbers, so the fact's bound must be beyond the test's in both orders.
    """
    implied, known = _bound(test), _bound(fact)
    if implied is None or known is None or implied[:2] != known[:2]:
        return False
    if isinstance(implied.value, str) != isinstance(known.value, str):
        return False
    if not _beyond(known, implied, known.value, implied.value):
        return False
    if isinstance(known.value, str):
        one, other = number_of(known.value), number_of(implied.value)
        return one is None or (other is not None and _beyond(known, implied, one, other))
    return True


def _beyond(known: _Bound, implied: _Bound, one: object, other: object) -> bool:
    if one == other:
        return known.strict or not implied.strict
    return bool((one > other) == known.large)  # type: ignore[operator]


def _of_domain(domain: str | None) -> tuple[Node, ...]:
    if domain is None:
        return ()
    return (Compare("=", _DOMAIN, Const(domain)) if domain else OfType(domain, None),)


def _simple(test: Text) -> Node:
    match test.parts:
        case [text]:
            return Compare("=", test.path, Const(text))
        case [text, ""]:
            return Text("prefix", test.path, text)
        case ["", text]:
            return Text("suffix", test.path, text)
        case ["", text, ""]:
            return Text("substring", test.path, text)
    return test


def _whole(operand: Operand) -> Operand:
    return _whole_const(operand) if isinstance(operand, Const) else operand


def _whole_const(const: Const) -> Const:
    """Return 1 for 1.0; they compare as equal."""
    value = const.value
    if not isinstance(value, float) or not value.is_integer():
        return const
    whole = int(value)
    return Const(whole) if limits.INTEGER_MIN <= whole <= limits.INTEGER_MAX else const
