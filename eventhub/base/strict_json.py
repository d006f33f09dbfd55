"""Strict JSON: nothing rounded, nothing guessed, nothing nested without bound. Plain module."""

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

# a string may be unterminated: matching to the end keeps the scan linear whatever the text
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)', re.DOTALL)
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
NOT_NULL = "This cannot be null; give a value, or leave it out."
_INTEGER_CHARS_MAX = 20  # -9223372036854775808, 18446744073709551615


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in the body, or the error that says where it is broken."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise InvalidField("The body must be a JSON object.")
    return value


def parse_json(body: bytes) -> Any:
    """The JSON in the body, or the error that says where it is broken."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidUtf8(offset=error.start) from error
    _check_size(body)
    doubtful: list[_Doubtful] = []
    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
            object_pairs_hook=partial(_object, doubtful=doubtful),
        )
        orjson.loads(body)  # refuses what Python's parser lets pass: half surrogates
    except json.JSONDecodeError as error:  # orjson's error is one too
        raise MalformedJson(f"Not JSON: {error}.", line=error.lineno, column=error.colno) from error
    if doubtful:
        raise InvalidField("The field is given twice.", field=_place_of_doubt(value))
    return value


def _check_size(body: bytes) -> None:
    """Count and nest before anything is made of it, at the speed of a copy."""
    opened = body.count(b"{") + body.count(b"[")
    if opened <= limits.JSON_DEPTH_MAX and body.count(b",") < limits.JSON_VALUES_MAX:
        return  # too few, wherever they stand
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
    """Raise TooDeep with its place and, of an outermost object, the member: the last string of the
    first level. Not for brackets that do not match, which the decoder finds.
    """
    depth, name, named = 0, None, text.lstrip().startswith("{")
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        elif depth == 1 and named:
            name = shown(mark[1:-1])
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


class _Doubtful(dict[str, Any]):
    """An object in which a name has two values."""

    twice: str


def _object(pairs: list[tuple[str, Any]], doubtful: list[_Doubtful]) -> dict[str, Any]:
    """Names and their values: the same pair twice is one pair (SUN-08), two values are a
    mistake, which is noted.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if repr(value) != repr(found[name]):  # not ==, for which 1 is true
                made = _Doubtful(found)
                made.twice = name
                doubtful.append(made)
                return made
    return found


def _place_of_doubt(value: Any) -> str | None:
    """The path of the first name with two values; one that stood in a value that went itself
    leaves one further out.
    """
    members: Iterable[tuple[object, Any]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for name, inner in members:
        place = _place_of_doubt(inner)
        if place is not None:
            return f"{shown(str(name))}.{place}"
    return shown(value.twice) if isinstance(value, _Doubtful) else None


def shown(name: str) -> str:
    """A field's name as an error may repeat it: short, and without half surrogates."""
    return name[:100].encode("utf-8", "replace").decode()
