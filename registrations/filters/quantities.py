"""The quantities that values stand for where languages compare and calculate with the fields of
several events: numbers, times of day, points in time, and texts. Plain module.

A text that is written as a number is that number, and one that is written as a time is that time,
because OIF's events have texts only and the interpreter converts them (OIF-14, OIF-21). So
`9:05:00` is before `12:40:18`. Quantities of different kinds have no order.
"""

import re
from datetime import datetime, timedelta, timezone
from math import isfinite
from typing import Any

from registrations.filters.values import number_of

NUMBER, TIME_OF_DAY, INSTANT, TEXT = range(4)
# A kind, and the number, the microseconds since midnight or since 1970 UTC, or the text.
Quantity = tuple[int, Any]

_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?")
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
_SECOND = 1_000_000  # in microseconds


def quantity_of(value: Any) -> Quantity | None:
    """Return the quantity that a JSON value stands for; None for true, false, null, a list and an
    object.
    """
    number = number_of(value)
    if number is not None:
        return NUMBER, number
    if not isinstance(value, str):
        return None
    if ":" in value:
        found = _time_of_day(value) or _instant(value)
        if found is not None:
            return found
    return TEXT, value


def sum_of(left: Quantity, right: Quantity) -> Quantity | None:
    """Add two numbers, or seconds to a time."""
    if left[0] == NUMBER and right[0] != NUMBER:
        left, right = right, left
    return _moved(left, right, 1)


def difference_of(left: Quantity, right: Quantity) -> Quantity | None:
    """Subtract numbers, or seconds from a time; of two times of one kind return the seconds between
    them.
    """
    if left[0] == right[0] and left[0] in (TIME_OF_DAY, INSTANT):
        micros = left[1] - right[1]
        return NUMBER, micros // _SECOND if micros % _SECOND == 0 else micros / _SECOND
    return _moved(left, right, -1)


def product_of(left: Quantity, right: Quantity) -> Quantity | None:
    """Multiply two numbers."""
    if left[0] != NUMBER or right[0] != NUMBER:
        return None
    try:
        return _finite(left[1] * right[1])
    except OverflowError:
        return None


def quotient_of(left: Quantity, right: Quantity) -> Quantity | None:
    """Divide two numbers; there is none by zero."""
    if left[0] != NUMBER or right[0] != NUMBER or not right[1]:
        return None
    try:
        return _finite(left[1] / right[1])
    except OverflowError:
        return None


def _moved(left: Quantity, right: Quantity, sign: int) -> Quantity | None:
    """Add or subtract a number; in seconds if the left side is a time."""
    kind, amount = left
    if right[0] != NUMBER or kind == TEXT:
        return None
    try:
        if kind == NUMBER:
            return _finite(amount + sign * right[1])
        return kind, amount + sign * round(right[1] * _SECOND)
    except OverflowError:
        return None


def _finite(number: float) -> Quantity | None:
    return (NUMBER, number) if isinstance(number, int) or isfinite(number) else None


def _time_of_day(text: str) -> Quantity | None:
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds, fraction = found.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    return TIME_OF_DAY, whole * _SECOND + _micros(fraction)


def _instant(text: str) -> Quantity | None:
    """Read a time of RFC 3339."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    plain, fraction, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        at = datetime.fromisoformat(plain.upper()).replace(tzinfo=_EPOCH.tzinfo) - _EPOCH
    except ValueError:
        return None
    at += offset if sign == "-" else -offset
    return INSTANT, at // timedelta(microseconds=1) + _micros(fraction)


def _micros(fraction: str | None) -> int:
    return int(fraction[:6].ljust(6, "0")) if fraction else 0
