"""The bounds of JSON values in an event: their size, depth and number of values. Plain module."""

from typing import Any

import orjson

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, NumberOutOfRange, TooDeep


def check_json(value: Any, field: str, bytes_max: int) -> bytes:
    """Return the value as compact JSON. Raises NumberOutOfRange, TooDeep, FieldTooLong. The depth
    is examined only of nested values, so flat attributes cost one encoding.
    """
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        kind = NumberOutOfRange if "Integer" in str(error) else TooDeep
        raise kind(field=field) from None
    if len(text) > bytes_max:
        raise FieldTooLong(field=field, bytes=len(text), bytes_max=bytes_max)
    if text.count(b"{") + text.count(b"[") > limits.JSON_DEPTH_MAX:
        _check_depth(value, field)
    return text


def check_values(value: Any, text: bytes, field: str, values_max: int) -> None:
    """Check the number of values in JSON, of which this is the text; counted only if there are
    enough commas and brackets. Raises FieldTooLong.
    """
    if len(text) < values_max:  # a value takes two bytes
        return
    if text.count(b",") + text.count(b"[") + text.count(b"{") < values_max:
        return
    count = 0
    waiting: list[dict[str, Any] | list[Any]] = [value] if isinstance(value, dict | list) else []
    while waiting:
        inside = waiting.pop()
        count += len(inside)
        values = inside.values() if isinstance(inside, dict) else inside
        waiting += [one for one in values if isinstance(one, dict | list)]
    if count > values_max:
        raise FieldTooLong(field=field, values_max=values_max)


def _check_depth(value: Any, field: str) -> None:
    level = [value]
    for _ in range(limits.JSON_DEPTH_MAX):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise TooDeep(field=field, depth_max=limits.JSON_DEPTH_MAX)
