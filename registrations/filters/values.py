"""The values of an event in filters: lookup by path, and comparison. Plain module.

All languages share these rules (decisions 3, 4 and 27 of the requirements; docs/languages.md):

* Values keep their JSON type: 1 equals 1.0; "1" and true equal neither.
* Two numbers have an order, and two texts, by code points. A text that is written as a JSON number
  counts as that number if the other side is a number (OIF-14).
* Each member of a list counts: a comparison holds if it holds for one of them. A list in a list and
  an object equal nothing.
* A path leads into the objects of a list: their values at the path are one list.
* A comparison with a missing value is false.
* Arithmetic on lists combines each member with each (event_values.py).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable, is_in_data
from eventhub.event.json_codec import time_text
from registrations.filters.ast import Comparison, Path

MISSING = object()
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_CHARS_MAX = 64
_TEXTS = ("domain", "type", "source", "name", "version", "node", "key", "bundle", "correlation",
          "cause", "summary")  # fmt: skip
_TIMES = {"time": "time_us", "expires_at": "expires_at_us"}
ENVELOPE = frozenset((*_TEXTS, *_TIMES, "id", "application", "priority"))  # names of `@name`


def value_at(attributes: dict[str, Any], name: str) -> Any:
    """Return the value of an attribute or at a dotted path into objects, or MISSING."""
    found = attributes.get(name, MISSING)
    if found is not MISSING or "." not in name:
        return found
    return value_inside(attributes, name)


def value_inside(value: Any, path: str) -> Any:
    """Return the value at a path in an object or in the objects of a list, or MISSING. The values
    of several objects are one list, flattened by one level.
    """
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list | tuple):
            found = [one[step] for one in value if isinstance(one, dict) and step in one]
            value = joined(found) if found else MISSING
        else:
            return MISSING
    return value


def joined(values: Iterable[Any]) -> list[Any]:
    """Return the values of several objects as one list, flattened by one level."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += value
        else:
            found.append(value)
    return found


def fields_inside(value: Any) -> dict[str, Any]:
    """Return the values one step below, by name: the fields of an object, or those of the objects
    of a list, as `value_inside` finds them. Other values have none.
    """
    if isinstance(value, dict):
        return value
    several: dict[str, list[Any]] = {}
    for one in value if isinstance(value, list | tuple) else ():
        if isinstance(one, dict):
            for name, found in one.items():
                several.setdefault(name, []).append(found)
    return {name: joined(found) for name, found in several.items()}


def objects_inside(value: Any) -> list[dict[str, Any]]:
    """Return the value itself if it is an object, or the objects in a list."""
    if isinstance(value, dict):
        return [value]
    several = value if isinstance(value, list | tuple) else ()
    return [one for one in several if isinstance(one, dict)]


def value_of(path: Path, event: Event) -> Any:
    """Return the value at a path in an event, or MISSING, also for an empty envelope field. A path
    into `data` leads into the body, if the event says so.
    """
    if path.space == "attributes":
        found = value_at(event.attributes, path.name)
        if found is MISSING and event.filterable_data and is_in_data(path.name):
            return value_at(filterable(event).attributes, path.name)
        return found
    if path.space == "environment":
        return (event.environment or {}).get(path.name, MISSING)
    if path.name in _TIMES:
        time_us = getattr(event, _TIMES[path.name])
        return time_text(time_us) if time_us else MISSING  # a later time is a greater text
    if path.name == "id":
        return event.id if isinstance(event.id, str) else MISSING
    if path.name == "priority":
        return event.priority
    return getattr(event, path.name) or MISSING


def members(value: Any) -> Iterator[Any]:
    """Yield the comparable values: the members of a list, or the value itself; no lists and no
    objects.
    """
    for one in value if isinstance(value, list | tuple) else (value,):
        if one is not MISSING and not isinstance(one, dict | list):
            yield one


def same(one: Any, other: Any) -> bool:
    """Return whether JSON values are equal: numbers by value, and true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def key_of(value: Any) -> Any:
    """Return a hashable key: two keys are equal if and only if the values are. 1 equals 1.0 and
    -0.0 equals 0.0, integers of any size are exact, true is not 1, null equals null only. The key
    of an array, an object or a NaN equals nothing.
    """
    if isinstance(value, bool):
        return (value,)  # (True,) != 1
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and value == value:  # noqa: PLR0124
        return value
    return object()


def outermost(values: Iterable[Any], *, least: bool) -> list[Any]:
    """Return the values that decide whether an order holds for any: the least (or greatest) text,
    number, and numeric text.
    """
    choose: Callable[..., Any] = min if least else max
    texts: list[Any] = []
    rest: list[Any] = []
    for value in values:
        (texts if isinstance(value, str) else rest).append(value)
    numeric = [[one for one in group if number_of(one) is not None] for group in (texts, rest)]
    found = [choose(group, key=number_of) for group in numeric if group]
    if texts:
        found.append(choose(texts))
    return found


def ordered(op: Comparison, one: Any, other: Any) -> bool:
    """Compare two values by `<`, `<=`, `>` or `>=`; false if they have no order."""
    if isinstance(one, str) and isinstance(other, str):
        return _holds(op, one, other)
    left, right = number_of(one), number_of(other)
    return left is not None and right is not None and _holds(op, left, right)


def number_of(value: Any) -> int | float | None:
    """Return a number, or the number that a text is in JSON; None for any other value."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value  # a float may not represent it
    if isinstance(value, float):
        return value if isfinite(value) else None
    if not isinstance(value, str) or len(value) > _NUMBER_CHARS_MAX:
        return None
    if _NUMBER.fullmatch(value) is None:
        return None
    if value.lstrip("-").isdigit():
        return int(value)
    found = float(value)
    return found if isfinite(found) else None


def result(op: str, left: float, right: float) -> Iterator[float]:
    """Yield the result of an operation on two numbers, if there is one."""
    try:
        if op == "+":
            found = left + right
        elif op == "-":
            found = left - right
        elif op == "*":
            found = left * right
        else:
            found = left / right
        if isfinite(found):
            yield found
    except (OverflowError, ZeroDivisionError):
        return


def _holds(op: Comparison, one: Any, other: Any) -> bool:
    if op == "<":
        return bool(one < other)
    if op == "<=":
        return bool(one <= other)
    if op == ">":
        return bool(one > other)
    return bool(one >= other)
