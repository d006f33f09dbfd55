"""What the values of an event are to a filter: how a path finds them and how they compare.
Plain module.

One set of rules for all languages (decisions 3, 4 and 27 of the requirements; docs/languages.md):

* Values keep their JSON type: 1 equals 1.0, "1" and true equal neither.
* An order is of two numbers or of two texts, these by code points. A text that is written as a JSON
  number counts as that number where the other side is one (OIF-14).
* Of a list each member counts: a comparison holds if it holds for one of them. A list in a list and
  an object equal nothing.
* A path leads into the objects of a list: the values that they have there are one list.
* What is missing makes every comparison false.
* Arithmetic of lists is of each member with each (event_values.py).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

from eventhub.event.envelope import Event
from eventhub.event.json_codec import time_text
from registrations.filters.ast import Comparison, Path

MISSING = object()
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_CHARS_MAX = 64
_TEXTS = ("domain", "type", "source", "name", "version", "node", "key", "bundle", "correlation",
          "cause", "summary")  # fmt: skip
_TIMES = {"time": "time_us", "expires_at": "expires_at_us"}
ENVELOPE = frozenset((*_TEXTS, *_TIMES, "id", "application", "priority"))  # what `@name` may be


def value_at(attributes: dict[str, Any], name: str) -> Any:
    """The value of an attribute or at a dotted path into objects, or MISSING."""
    found = attributes.get(name, MISSING)
    if found is not MISSING or "." not in name:
        return found
    return value_inside(attributes, name)


def value_inside(value: Any, path: str) -> Any:
    """What the steps of a path lead to in an object or in the objects of a list, or MISSING. What
    several objects of a list have is one list, in which the members of lists stand by themselves.
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
    """Values of several objects as one list, in which the members of lists stand by themselves."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += value
        else:
            found.append(value)
    return found


def fields_inside(value: Any) -> dict[str, Any]:
    """All that one step leads to, by name: the fields of an object, and of a list those of its
    objects, as `value_inside` finds them. Of anything else none.
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
    """The objects that a value is or has as members of a list."""
    if isinstance(value, dict):
        return [value]
    several = value if isinstance(value, list | tuple) else ()
    return [one for one in several if isinstance(one, dict)]


def value_of(path: Path, event: Event) -> Any:
    """What a path leads to in an event, or MISSING; of the envelope, what was not given is."""
    if path.space == "attributes":
        return value_at(event.attributes, path.name)
    if path.space == "environment":
        return (event.environment or {}).get(path.name, MISSING)
    if path.name in _TIMES:
        time_us = getattr(event, _TIMES[path.name])
        return time_text(time_us) if time_us else MISSING  # a later one is a greater text
    if path.name == "id":
        return event.id if isinstance(event.id, str) else MISSING
    if path.name == "priority":
        return event.priority
    return getattr(event, path.name) or MISSING


def members(value: Any) -> Iterator[Any]:
    """What of a value is compared: of a list its members, of anything else itself; no lists and no
    objects.
    """
    for one in value if isinstance(value, list | tuple) else (value,):
        if one is not MISSING and not isinstance(one, dict | list):
            yield one


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: numbers by value, and true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def key_of(value: Any) -> Any:
    """A value as a hashable: two are equal if and only if the values are. 1 equals 1.0 and -0.0
    equals 0.0, integers of any size are exact, true is not 1, null equals null only. An array, an
    object or a NaN becomes a key that equals nothing.
    """
    if isinstance(value, bool):
        return (value,)  # (True,) != 1
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and value == value:
        return value
    return object()


def outermost(values: Iterable[Any], *, least: bool) -> list[Any]:
    """Of values those that decide whether an order holds for any: the least, or the greatest, text,
    number, and text that is a number.
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
    """`<`, `<=`, `>`, `>=` of two values; false if they have no order."""
    if isinstance(one, str) and isinstance(other, str):
        return _holds(op, one, other)
    left, right = number_of(one), number_of(other)
    return left is not None and right is not None and _holds(op, left, right)


def number_of(value: Any) -> int | float | None:
    """A number, or a text that is written as a JSON number, as a number; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value  # also one that no float holds
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
    """What comes of two numbers: one, or nothing."""
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
