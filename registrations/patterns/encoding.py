"""A parsed pattern as bytes, which are read several times faster than its text is parsed. Plain
module.

The first byte is the version of the format; the rest is MessagePack, in which each node of the
tree is a list of a number for its class and its fields. Positions in the text are left out. It has
the digest of the normal form as well, which takes as long to compute as the rest.
"""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from msgspec import DecodeError, msgpack

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    In,
    Not,
    OfType,
    Or,
    Path,
    Text,
    Truth,
    Within,
)
from registrations.patterns.ast import (
    AnnounceAction,
    AssignAction,
    Combined,
    Do,
    Element,
    IncrementAction,
    NewEventForm,
    NotifyAction,
    Pattern,
    SetFunction,
    VariablePath,
    Where,
)
from registrations.patterns.printed import normal_pattern

_VERSION = b"\x01"
_TUPLE = 0  # the number of a tuple; classes have theirs from 1 on, in the order of the table below


def _variable_path(
    name: str, variable: str, component: Path | None, function: SetFunction | None
) -> VariablePath:
    return VariablePath(name, "attributes", None, variable, component, function)


_FIELDS: dict[type, tuple[str, ...]] = {  # any change needs another version
    Path: ("name", "space"),
    Const: ("value",),
    Arithmetic: ("op", "left", "right"),
    Compare: ("op", "left", "right"),
    In: ("path", "values"),
    Text: ("op", "path", "text"),
    Exists: ("path",),
    Within: ("path", "item"),
    OfType: ("domain", "type", "below"),
    And: ("items",),
    Or: ("items",),
    Not: ("item",),
    Truth: ("value",),
    VariablePath: ("name", "variable", "component", "function"),
    Element: ("node", "variable", "is_sequence", "least", "most"),
    Combined: ("operator", "left", "right"),
    Where: ("part", "condition"),
    Do: ("part", "actions"),
    NewEventForm: ("domain", "type", "attributes"),
    AssignAction: ("variable", "event"),
    NotifyAction: ("variables", "target"),
    AnnounceAction: ("event", "stream"),
    IncrementAction: ("counter", "by"),
    Pattern: ("part", "within_us", "last", "per", "once", "digest"),
}
_NUMBERS = {kind: number for number, kind in enumerate(_FIELDS, 1)}
_MAKERS: tuple[Callable[..., Any], ...] = (
    lambda *items: items,
    *(_variable_path if kind is VariablePath else kind for kind in _FIELDS),
)


def digest_of(pattern: Pattern) -> bytes:
    """Return 16 bytes that are equal for patterns with equal normal forms."""
    if pattern.digest:
        return pattern.digest
    return blake2b(normal_pattern(pattern).encode(), digest_size=16).digest()


def encoded_pattern(pattern: Pattern) -> bytes:
    """Encode a pattern that `parse_pattern` returned."""
    return _VERSION + msgpack.encode(_listed(replace(pattern, digest=digest_of(pattern))))


def decoded_pattern(data: bytes) -> Pattern:
    """Decode a pattern. It equals the one that was encoded, but has no positions in the text.
    Raises ValueError for an unknown format: then the text is to be parsed.
    """
    if data[:1] != _VERSION:
        raise ValueError("the encoded pattern has an unknown format")
    try:
        pattern = _made(msgpack.decode(data[1:]))
    except (DecodeError, IndexError, TypeError, ValueError) as error:
        raise ValueError("the encoded pattern cannot be read") from error
    if isinstance(pattern, Pattern):
        return pattern
    raise ValueError("the encoded pattern is something else")


def _listed(value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        return [_TUPLE, *map(_listed, value)]
    number = _NUMBERS.get(kind)
    return value if number is None else [number, *map(_listed, _values_of(value, _FIELDS[kind]))]


def _values_of(node: Any, fields: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(node, name) for name in fields)


def _made(value: Any) -> Any:
    if type(value) is not list:
        return value
    return _MAKERS[value[0]](*map(_made, value[1:]))
