"""The cost of checking an event against a schema, bounded before the check. Plain module.

A schema without references is applied to each value at most once. A subschema outside of arrays and
name patterns is applied once per event; one inside, such as `items`, once per value. So the number
of inner subschemas times the values, and the patterns times the text, bound the work. A unit is
about 40 ns.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import jsonschema_rs

from eventhub.base import limits
from eventhub.types.errors import TypeTooCostly
from eventhub.types.schemas import MANY, NAMED, ONE, Schema

_REPEATED = frozenset(
    {"additionalProperties", "contains", "items", "patternProperties", "propertyNames"}
)
_TIMES = re.compile(r"\{(\d*),?(\d*)\}")
# Bytes of the compiled pattern, and the highest measured units per byte of text.
_PATTERNS = ((4 * 1024, 3), (16 * 1024, 85), (limits.TYPE_PATTERN_BYTES_MAX, 675))
_UNIQUE = 16  # units for each value below an array with uniqueItems


class CheckCost(NamedTuple):
    """Units for each value of an event, and for each byte of its text."""

    values: int = 0
    text: int = 0

    def __add__(self, other: Any) -> "CheckCost":
        return CheckCost(self.values + other[0], self.text + other[1])

    def of(self, value: Any, size: int) -> int:
        """Return the units for a value of `size` bytes as JSON: an upper bound if that is small,
        else the exact count.
        """
        bound = self.values * (size // 2 + 1) + self.text * size
        if bound <= limits.TYPE_WORK_UNCOUNTED_MAX:
            return bound
        values, text = _extent(value)
        return self.values * values + self.text * text


def cost_of(schema: Schema | bool, *, repeated: bool = False) -> CheckCost:
    """Return the cost of an inlined schema; `repeated`: it applies to many values of one event."""
    found = CheckCost(1 if repeated else 0)
    if isinstance(schema, bool):
        return found
    for keyword, value in schema.items():
        many = repeated or keyword in _REPEATED
        if keyword in ONE:
            found += cost_of(value, repeated=many)
        elif keyword in MANY or keyword in NAMED:
            for one in value.values() if keyword in NAMED else value:
                found += cost_of(one, repeated=many)
        elif repeated:
            found += CheckCost(_extent(value)[0])
        found += _of_keyword(keyword, value)
    return found


def _of_keyword(keyword: str, value: Any) -> CheckCost:
    if keyword == "pattern":
        return CheckCost(0, _of_pattern(value))
    if keyword == "patternProperties":
        return CheckCost(0, sum(map(_of_pattern, value)))
    if keyword == "uniqueItems":
        return CheckCost(_UNIQUE)
    return CheckCost(0, 1) if keyword == "format" else CheckCost()


def _of_pattern(pattern: str) -> int:
    """Return the units per byte of text: a bound by the states that the automaton may be in."""
    states = len(pattern)
    for least, most in _TIMES.findall(pattern):
        states *= max(int(least or 1), int(most or 1), 1)
    for size, units in _PATTERNS:
        options = jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=size)
        try:
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except (jsonschema_rs.ValidationError, ValueError):
            continue
        return min(units, states // 6 + 1)
    return _PATTERNS[-1][1]


def _extent(value: Any) -> tuple[int, int]:
    """Return the number of values, including itself, and the bytes of texts and names."""
    values = text = 0
    for one in _walk(value):
        values += 1
        if isinstance(one, str):
            text += len(one) if one.isascii() else len(one.encode())
    return values, text


def _walk(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one


class Budget:
    """The work that one request spends on checks. Only one expensive request runs at a time; it
    yields to the event loop between its events.
    """

    def __init__(self, expensive: asyncio.Lock) -> None:
        self._expensive = expensive
        self._holds_lock = False
        self._spent = 0
        self._since_yield = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._holds_lock:
            self._expensive.release()

    async def spend(self, work: int) -> None:
        """Charge a check of `work` units, before it is done. Raises TypeTooCostly."""
        self._spent += work
        self._since_yield += work
        if self._spent > limits.TYPE_WORK_PER_REQUEST_MAX:
            raise TypeTooCostly(
                "The events of this request take too long to check together; send fewer at once.",
                work_max=limits.TYPE_WORK_PER_REQUEST_MAX,
            )
        if self._since_yield <= limits.TYPE_WORK_PER_SLICE_MAX:
            return
        if not self._holds_lock:
            await self._expensive.acquire()
            self._holds_lock = True
        await asyncio.sleep(0)
        self._since_yield = work
