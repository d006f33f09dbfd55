"""What the check of an event may cost, known before it is done. Plain module.

A schema that is a tree is applied to each value once at most. What stands outside of arrays and
named sets is applied once to an event; what stands inside, `items` for one, is applied to as many
values as there are. So the schemas inside times the values bound the work, and the patterns times
the text. A unit is about 40 ns.
"""

import asyncio
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import jsonschema_rs

from eventhub.base import limits
from eventhub.types.errors import TypeTooCostly
from eventhub.types.schemas import MANY, NAMED, ONE, Schema

_REPEATED = frozenset(
    {"additionalProperties", "contains", "items", "patternProperties", "propertyNames"}
)
_TIMES = re.compile(r"\{(\d*),?(\d*)\}")
# Bytes of the compiled pattern, and the most that a byte of text took then, in units.
_PATTERNS = ((4 * 1024, 3), (16 * 1024, 85), (limits.TYPE_PATTERN_BYTES_MAX, 675))
_UNIQUE = 16  # units for each value below an array that is sorted out


class Work(NamedTuple):
    """Units for each value of an event, and for each byte of its text."""

    values: int = 0
    text: int = 0

    def __add__(self, other: Any) -> "Work":
        return Work(self.values + other[0], self.text + other[1])

    def of(self, given: Any, size: int) -> int:
        """Units for what is given, which has so many bytes as JSON: a bound for what is little,
        counted for what may be much.
        """
        bound = self.values * (size // 2 + 1) + self.text * size
        if bound <= limits.TYPE_WORK_UNCOUNTED_MAX:
            return bound
        values, text = _extent(given)
        return self.values * values + self.text * text


def work_of(schema: Schema | bool, *, repeated: bool = False) -> Work:
    """Of a schema that was written out; `repeated` if it is applied to many values of one event."""
    found = Work(1 if repeated else 0)
    if isinstance(schema, bool):
        return found
    for keyword, value in schema.items():
        many = repeated or keyword in _REPEATED
        if keyword in ONE:
            found += work_of(value, repeated=many)
        elif keyword in MANY or keyword in NAMED:
            for one in value.values() if keyword in NAMED else value:
                found += work_of(one, repeated=many)
        elif repeated:
            found += Work(_extent(value)[0])
        found += _of_keyword(keyword, value)
    return found


def _of_keyword(keyword: str, value: Any) -> Work:
    if keyword == "pattern":
        return Work(0, _of_pattern(value))
    if keyword == "patternProperties":
        return Work(0, sum(map(_of_pattern, value)))
    if keyword == "uniqueItems":
        return Work(_UNIQUE)
    return Work(0, 1) if keyword == "format" else Work()


def _of_pattern(pattern: str) -> int:
    """By how many places of the pattern a text may be in at once, as far as its size allows."""
    places = len(pattern)
    for least, most in _TIMES.findall(pattern):
        places *= max(int(least or 1), int(most or 1), 1)
    for size, units in _PATTERNS:
        options = jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=size)
        try:
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except (jsonschema_rs.ValidationError, ValueError):
            continue
        return min(units, places // 6 + 1)
    return _PATTERNS[-1][1]


def _extent(given: Any) -> tuple[int, int]:
    """How many values it has, itself one of them, and the bytes of its texts and names."""
    values = text = 0
    for one in _walk(given):
        values += 1
        if isinstance(one, str):
            text += len(one) if one.isascii() else len(one.encode())
    return values, text


def _walk(given: Any) -> Iterator[Any]:
    waiting = [given]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one


class Budget:
    """What one request spends on checks. While it spends much, others of its kind wait for their
    turn, and between its events whoever else runs in this process goes on.
    """

    def __init__(self, turn: asyncio.Lock) -> None:
        self._turn = turn
        self._mine = False
        self._spent = 0
        self._unbroken = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mine:
            self._turn.release()

    async def spend(self, work: int) -> None:
        """Before a check of so many units. Raises TypeTooCostly."""
        self._spent += work
        self._unbroken += work
        if self._spent > limits.TYPE_WORK_PER_REQUEST_MAX:
            raise TypeTooCostly(
                "The events of this request take too long to check together; send fewer at once.",
                work_max=limits.TYPE_WORK_PER_REQUEST_MAX,
            )
        if self._unbroken <= limits.TYPE_WORK_PER_SLICE_MAX:
            return
        if not self._mine:
            await self._turn.acquire()
            self._mine = True
        await asyncio.sleep(0)
        self._unbroken = work
