"""What the values of an event are to a filter: how a path finds them and how they compare. Plain.

One set of rules for all languages (decisions 3, 4 and 27 of the requirements; docs/languages.md):

* Values keep their JSON type: 1 equals 1.0, "1" and true equal neither.
* An order is of two numbers or of two texts, these by code points. A text that is written as a JSON
  number counts as that number where the other side is one (OIF-14).
* Of a list each member counts: a comparison holds if it holds for one of them. A list in a list and
  an object equal nothing.
* What is missing makes every comparison false.
* Arithmetic of lists is of each member with each, and nothing where that is more than 1,000 times.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

from eventhub.event.envelope import Event
from eventhub.event.json_codec import time_text
from registrations.lang.ast import Arithmetic, Comparison, Const, Operand, Path

MISSING = object()
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_CHARS_MAX = 64
_RESULTS_MAX = 1_000  # of one arithmetic: lists with lists would come to any number
_TEXTS = ("domain", "type", "source", "name", "version", "node", "key", "bundle", "correlation",
          "cause", "summary")  # fmt: skip
_TIMES = {"time": "time_us", "expires_at": "expires_at_us"}
ENVELOPE = frozenset((*_TEXTS, *_TIMES, "id", "application", "priority"))  # what `@name` may be


def value_at(attributes: dict[str, Any], name: str) -> Any:
    """The value of an attribute or at a dotted path into objects, or MISSING."""
    found = attributes.get(name, MISSING)
    if found is not MISSING or "." not in name:
        return found
    inside: Any = attributes
    for step in name.split("."):
        if not isinstance(inside, dict) or step not in inside:
            return MISSING
        inside = inside[step]
    return inside


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


def operands_of(operand: Operand, event: Event) -> Iterator[Any]:
    """The values that an operand stands for in an event; none if it is missing."""
    if isinstance(operand, Const):
        yield operand.value
    elif isinstance(operand, Path):
        yield from members(value_of(operand, event))
    else:
        yield from _results(operand, event)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: numbers by value, and true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def meet(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """True if one of each are the same; in a time that grows with both, not with their product."""
    wanted = {(isinstance(one, bool), one) for one in others}
    return any((isinstance(one, bool), one) in wanted for one in some)


def outermost(values: list[Any], *, least: bool) -> list[Any]:
    """Of values those that decide whether an order holds for any: the least, or the greatest, text,
    number, and text that is a number.
    """
    choose: Callable[..., Any] = min if least else max
    texts = [value for value in values if isinstance(value, str)]
    rest = [value for value in values if not isinstance(value, str)]
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


def fits(parts: list[str], text: str) -> bool:
    """True if a text has the parts of a wildcard in their order: the first at its beginning, the
    last at its end. Linear: each is looked for once.
    """
    first, *middle = parts
    if not middle:
        return text == first
    last = middle.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def wildcard_parts(pattern: str) -> list[str]:
    """The texts between the stars, without the escapes. Raises ValueError for a lone backslash."""
    parts = [""]
    chars = iter(pattern)
    for char in chars:
        if char == "*":
            parts.append("")
            continue
        if char == "\\":
            char = next(chars, "")
            if char not in ("*", "\\"):
                raise ValueError("In a wildcard a backslash stands before `*` or another one.")
        parts[-1] += char
    return parts


def _results(operand: Arithmetic, event: Event) -> Iterator[Any]:
    lefts, rights = list(operands_of(operand.left, event)), list(operands_of(operand.right, event))
    if len(lefts) * len(rights) > _RESULTS_MAX:
        return
    for one in lefts:
        for other in rights:
            left, right = number_of(one), number_of(other)
            if left is not None and right is not None:
                yield from _result(operand.op, left, right)


def _result(op: str, left: float, right: float) -> Iterator[float]:
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
