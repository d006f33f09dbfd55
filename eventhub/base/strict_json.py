"""Strict JSON: no rounding, no guessing, bounded nesting. Plain module."""

import json
import re
from collections.abc import Iterable
from functools import partial
from typing import Any, NoReturn

import orjson

from eventhub.base import limits
from eventhub.base.errors import (
    BodyTooLarge,
    InvalidField,
    InvalidUtf8,
    MalformedJson,
    NumberOutOfRange,
    TooDeep,
)

# a string may be unterminated: matching to the end keeps the scan linear for any text
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)', re.DOTALL)
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
NOT_NULL = "This cannot be null; give a value, or leave it out."
_INTEGER_CHARS_MAX = 20  # -9223372036854775808, 18446744073709551615


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body. Raises as `parse_json`, and InvalidField."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise InvalidField("The body must be a JSON object.")
    return value


def parse_json(body: bytes) -> Any:
    """Return the JSON value in the body. Raises an error with the position: InvalidUtf8,
    MalformedJson, TooDeep, NumberOutOfRange, BodyTooLarge, InvalidField for a name given twice.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidUtf8(offset=error.start) from error
    _check_size(body)
    duplicates: list[_DuplicateName] = []
    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
            object_pairs_hook=partial(_object, duplicates=duplicates),
        )
        orjson.loads(body)  # refuses lone surrogates, which Python's parser accepts
    except json.JSONDecodeError as error:  # orjson's error is one too
        raise MalformedJson(f"Not JSON: {error}.", line=error.lineno, column=error.colno) from error
    if duplicates:
        raise InvalidField("The field is given twice.", field=_duplicate_path(value))
    return value


def _check_size(body: bytes) -> None:
    """Check the number of values and the depth before parsing, at the speed of a copy."""
    opened = body.count(b"{") + body.count(b"[")
    if opened <= limits.JSON_DEPTH_MAX and body.count(b",") < limits.JSON_VALUES_MAX:
        return  # too few in any nesting
    bare = _STRING.sub(b"", body)
    if bare.count(b"{") + bare.count(b"[") + bare.count(b",") > limits.JSON_VALUES_MAX:
        _refuse_depth(body[: limits.LOGIN_BODY_BYTES_MAX].decode(errors="replace"))
        message = f"The JSON has more than {limits.JSON_VALUES_MAX:,} values; send fewer."
        raise BodyTooLarge(message, values_max=limits.JSON_VALUES_MAX)
    brackets = bare.translate(None, _NO_BRACKETS)
    for _ in range(limits.JSON_DEPTH_MAX):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return
    _refuse_depth(body.decode())


def _refuse_depth(text: str) -> None:
    """Raise TooDeep with the offset and, in an outermost object, the member: the last string of the
    first level. The decoder finds brackets that do not match.
    """
    depth, name, named = 0, None, text.lstrip().startswith("{")
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        elif depth == 1 and named:
            name = printable(mark[1:-1])
        if depth > limits.JSON_DEPTH_MAX:
            raise TooDeep(field=name, offset=match.start(), depth_max=limits.JSON_DEPTH_MAX)


def _integer(text: str) -> int:
    if len(text) > _INTEGER_CHARS_MAX or not limits.INTEGER_MIN <= int(text) <= limits.INTEGER_MAX:
        raise NumberOutOfRange(number=text[:40])
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NumberOutOfRange(number=text[:40])
    return value


def _constant(text: str) -> NoReturn:
    raise NumberOutOfRange(number=text)


class _DuplicateName(dict[str, Any]):
    """An object in which a name has two values."""

    name: str


def _object(pairs: list[tuple[str, Any]], duplicates: list[_DuplicateName]) -> dict[str, Any]:
    """Return the object of these pairs. The same pair twice is one pair (SUN-08); a name with two
    values is an error, which is noted.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if repr(value) != repr(found[name]):  # not ==, because 1 == True
                duplicate = _DuplicateName(found)
                duplicate.name = name
                duplicates.append(duplicate)
                return duplicate
    return found


def _duplicate_path(value: Any) -> str | None:
    """Return the path of the first name with two values, or of an object around it if its own
    value was replaced.
    """
    members: Iterable[tuple[object, Any]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for name, inner in members:
        path = _duplicate_path(inner)
        if path is not None:
            return f"{printable(str(name))}.{path}"
    return printable(value.name) if isinstance(value, _DuplicateName) else None


def printable(name: str) -> str:
    """Return a field's name for an error: short, and without lone surrogates."""
    return name[:100].encode("utf-8", "replace").decode()
