"""The terms of a spec: keys that an event has or does not have, and the remaining tests.
Plain module.

A key is exact: the event has it if and only if its condition holds. So a negated condition is a key
that the event must not have.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from registrations.filters.ast import (
    FLIPPED,
    Compare,
    Comparison,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Path,
    Scalar,
    Text,
)
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from registrations.filters.values import number_of
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.names import (
    Number,
    below_name,
    number_order,
    raw,
    type_name,
    value_head,
    value_tail,
)
from registrations.match_index.format.text_keys import TextKey, WildcardKey, text_key
from registrations.matching.conditions import anchor_of

_TESTS_CACHED = 4_096
# Dataclasses, because as tuples, keys of two classes could be equal.


@dataclass(frozen=True, slots=True, order=True)
class Value:
    """A member of the value at a path equals this one. `name`: its byte string."""

    name: bytes
    path: str


@dataclass(frozen=True, slots=True, order=True)
class TypeKey:
    """The event's type or a supertype, by the name of the type or of all types below one."""

    name: bytes


@dataclass(frozen=True, slots=True, order=True)
class PathExists:
    """A path exists; `member`: it has a comparable value, so it is no empty list and no object."""

    path: str
    member: bool


@dataclass(frozen=True, slots=True, order=True)
class OneOf:
    """A member equals one of these values; their names are sorted."""

    path: str
    names: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, order=True)
class Above:
    """A number, or a numeric text, is above a threshold, or equal to it if not `strict`."""

    path: str
    than: Number
    strict: bool


@dataclass(frozen=True, slots=True, order=True)
class Below:
    path: str
    than: Number
    strict: bool


@dataclass(frozen=True, slots=True, order=True)
class AboveText:
    """A text is above another one by code points, or equal to it if not `strict`."""

    path: str
    than: bytes
    strict: bool


@dataclass(frozen=True, slots=True, order=True)
class BelowText:
    path: str
    than: bytes
    strict: bool


Threshold = Above | Below | AboveText | BelowText
Key = Value | TextKey | WildcardKey | TypeKey | PathExists | OneOf | Threshold


class Test(NamedTuple):
    """A test that has no keys: its text, and an attribute that it requires."""

    text: str
    anchor: str | None


class TestTerms(NamedTuple):
    """The terms of one test: required keys, excluded keys, and tests."""

    required: tuple[Key, ...] = ()
    excluded: tuple[Key, ...] = ()
    tests: tuple[Test, ...] = ()


def pair_key(path: str, value: object) -> Value:
    """Return the key of a pair. Raises NotIndexable for a NaN or a value that is not a scalar."""
    name = _name(path, value)
    if name is None:
        raise NotIndexable(f"The value of {path!r} equals nothing.", field=path)
    return Value(name, path)


def test_terms(node: Node, domain: str | None) -> TestTerms:
    """Return the terms of a test. `domain`: of the spec's gate. Raises NotIndexable for a test that
    no language can express, such as one with an integer of more than 64 bits.
    """
    found = keys_of_test(node, domain)
    return TestTerms(tests=(_test(node),)) if found is None else TestTerms(*found)


Keys = tuple[tuple[Key, ...], tuple[Key, ...]]  # required and excluded


def keys_of_test(node: Node, domain: str | None) -> Keys | None:
    """Return the keys equivalent to a test, None if there are none. `domain`: of the gate."""
    match node:
        case Not(item):
            inner = keys_of_test(item, domain)
            if inner is None or len(inner[0]) != 1 or inner[1]:
                return None
            return (), inner[0]
        case Compare(op, Const() as left, Path() as right):
            return _compared(FLIPPED[op], right, left)
        case Compare(op, Path() as left, Const() as right):
            return _compared(op, left, right)
        case OfType(of, type, below):
            return _of_type(type, below=below) if of is None or of == domain else None
        case In(Path(path, "attributes"), values):
            names = [_name(path, value.value) for value in values]
            return None if None in names else (_one_of(path, names), ())
        case Text("wildcard", Path(path, "attributes"), parts=(text,)):
            return _compared("=", node.path, Const(text))
        case Text(path=Path(_, "attributes")):
            key = text_key(node)
            return None if key is None else ((key,), ())
        case Exists(Path(path, "attributes")):
            return (PathExists(path, False),), ()
    return None


def _compared(op: Comparison, left: Path, right: Const) -> Keys | None:
    if left.space != "attributes":
        return None
    path, value = left.name, right.value
    if op not in ("=", "!="):
        key = _threshold(op, path, value)
        return None if key is None else ((key,), ())
    name = _name(path, value)
    if name is None:
        return None
    if op == "=":
        return (Value(name, path),), ()
    return (PathExists(path, True),), (Value(name, path),)


def _threshold(op: str, path: str, value: Scalar) -> Key | None:
    """Return the key of a threshold; None also for a numeric text, which has two orders."""
    strict = op in ("<", ">")
    if isinstance(value, str):
        if number_of(value) is not None:
            return None
        return (AboveText if op[0] == ">" else BelowText)(path, raw(value), strict)
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        if not limits.INTEGER_MIN <= value <= limits.INTEGER_MAX:
            return None
    elif not isfinite(value):
        return None
    return (Above if op[0] == ">" else Below)(path, number_order(value), strict)


def _of_type(type: str | None, *, below: bool) -> Keys:
    if type is None:
        return (), ()
    return (TypeKey(below_name(type) if below else type_name(type)),), ()


def _one_of(path: str, names: list[bytes | None]) -> tuple[Key, ...]:
    found = tuple(sorted({name for name in names if name is not None}))
    return (Value(found[0], path) if len(found) == 1 else OneOf(path, found),)


def _name(path: str, value: object) -> bytes | None:
    tail = value_tail(value)
    return None if tail is None else value_head(path) + tail


@lru_cache(_TESTS_CACHED)
def _test(node: Node) -> Test:
    """Return a test as text; check that parsing it gives the same test."""
    try:
        text = printed(node)
        same = parse_predicate(text) == node
        raw(text).decode()
    except (EventHubError, ValueError, RecursionError) as error:
        raise NotIndexable(f"A test cannot be written as text: {node!r}") from error
    if not same:
        raise NotIndexable(f"The text of a test does not parse to the same test: {text}")
    return Test(text, anchor_of((node,)))
