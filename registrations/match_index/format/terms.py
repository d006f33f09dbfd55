"""What a spec asks for, as keys that an event has or has not, and the tests that are left.
Plain module.

A key is a tuple, exact: the event has it if and only if the condition holds. So a condition behind
a `not` is a key that must not be there.
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
from registrations.matching.conditions import anchor_of

PREFIX_BYTES_MAX = 64  # a longer one is a test: an event's text is looked up for each length
_TESTS_REMEMBERED = 4_096
# Dataclasses: as tuples, keys of two classes could be equal.


@dataclass(frozen=True, slots=True, order=True)
class Value:
    """A member of the value at a path equals this. `name` is its byte string."""

    name: bytes
    path: str


@dataclass(frozen=True, slots=True, order=True)
class Prefix:
    """A text at a path begins so."""

    path: str
    prefix: bytes


@dataclass(frozen=True, slots=True, order=True)
class OfName:
    """The event's type or one above it, by the byte string of the type or of what is below it."""

    name: bytes


@dataclass(frozen=True, slots=True, order=True)
class There:
    """Something is at a path; `member`: what can be compared, so no empty list and no object."""

    path: str
    member: bool


@dataclass(frozen=True, slots=True, order=True)
class OneOf:
    """A member equals one of these, by their byte strings in order."""

    path: str
    names: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, order=True)
class Above:
    """A number, or a text written as one, is above a threshold, or at it."""

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
    """A text is above another one by code points, or is that."""

    path: str
    than: bytes
    strict: bool


@dataclass(frozen=True, slots=True, order=True)
class BelowText:
    path: str
    than: bytes
    strict: bool


Key = Value | Prefix | OfName | There | OneOf | Above | Below | AboveText | BelowText


class Test(NamedTuple):
    """What is tried by evaluation: its text, and an attribute that it cannot do without."""

    text: str
    anchor: str | None


class Terms(NamedTuple):
    """What one test comes to."""

    wanted: tuple[Key, ...] = ()
    unwanted: tuple[Key, ...] = ()
    tests: tuple[Test, ...] = ()


def pair_key(path: str, value: object) -> Value:
    """Raises NotIndexable for a NaN and for what is no scalar."""
    name = _name(path, value)
    if name is None:
        raise NotIndexable(f"The value of {path!r} equals nothing.", field=path)
    return Value(name, path)


def test_terms(node: Node, domain: str | None) -> Terms:
    """Raises NotIndexable for what no language can say, such as an integer of more than 64 bits.
    `domain`: that of the spec's gate.
    """
    found = keys_of_test(node, domain)
    return Terms(tests=(_test(node),)) if found is None else Terms(*found)


Keys = tuple[tuple[Key, ...], tuple[Key, ...]]  # that must be there, and that must not


def keys_of_test(node: Node, domain: str | None) -> Keys | None:
    """None if no keys say the same. `domain`: that of the gate."""
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
        case Text("prefix", Path(path, "attributes"), text) if len(raw(text)) <= PREFIX_BYTES_MAX:
            return (Prefix(path, raw(text)),), ()
        case Exists(Path(path, "attributes")):
            return (There(path, False),), ()
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
    return (There(path, True),), (Value(name, path),)


def _threshold(op: str, path: str, value: Scalar) -> Key | None:
    """None also for a text that is written as a number: it has a place in both orders."""
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
    return (OfName(below_name(type) if below else type_name(type)),), ()


def _one_of(path: str, names: list[bytes | None]) -> tuple[Key, ...]:
    found = tuple(sorted({name for name in names if name is not None}))
    return (Value(found[0], path) if len(found) == 1 else OneOf(path, found),)


def _name(path: str, value: object) -> bytes | None:
    tail = value_tail(value)
    return None if tail is None else value_head(path) + tail


@lru_cache(_TESTS_REMEMBERED)
def _test(node: Node) -> Test:
    """Stored as text, so it must be the same when it is read back."""
    try:
        text = printed(node)
        same = parse_predicate(text) == node
        raw(text).decode()
    except (EventHubError, ValueError, RecursionError) as error:
        raise NotIndexable(f"A test cannot be written as text: {node!r}") from error
    if not same:
        raise NotIndexable(f"A test is another one when it is read back: {text}")
    return Test(text, anchor_of((node,)))
