"""The fields that a type describes anywhere in its schemas. Plain module.

A new version may constrain a field freely if no producer sends it yet. A field that any schema
describes (in an `allOf`, by a pattern, of a parent or subtype) may be sent already.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jsonschema_rs

from eventhub.types.schemas import MANY, NAMED, ONE, Schema

Steps = tuple[str, ...]

ANY = "*"  # the step to a field that has no name in the schema
ITEM = "[]"
_STEPS = {  # all other keywords apply to the same value
    "additionalProperties": ANY,
    "patternProperties": ANY,
    "contains": ITEM,
    "items": ITEM,
    "prefixItems": ITEM,
}


class DescribedFields:
    """The fields that schemas of the same value describe."""

    def __init__(self, schemas: Iterable[Schema | bool], *, all: bool = False) -> None:
        """Collect the fields. `all`: every field counts as described, as those of the header do."""
        self._all = all
        self._fields: set[Steps] = set()
        self._patterns: set[tuple[Steps, str]] = set()
        for schema in schemas:
            self._read(schema, ())

    def include(self, steps: Steps, name: str) -> bool:
        """Return True if the field of the value at these steps may be sent already."""
        if self._all:
            return True
        field = (*steps, name)
        return any(_meet(one, field) for one in self._fields) or any(
            _meet(at, steps) and matches(pattern, name) for at, pattern in self._patterns
        )

    def _read(self, schema: Any, steps: Steps) -> None:
        if not isinstance(schema, dict):
            return
        for keyword, value in schema.items():
            if keyword == "properties":
                for name, one in value.items():
                    self._fields.add((*steps, name))
                    self._read(one, (*steps, name))
                continue
            inside = (*steps, _STEPS[keyword]) if keyword in _STEPS else steps
            if keyword == "patternProperties":
                self._patterns |= {(steps, pattern) for pattern in value}
            if keyword == "additionalProperties" and isinstance(value, dict):
                self._fields.add(inside)
            for one in _within(keyword, value):
                self._read(one, inside)


class ValuePath(NamedTuple):
    """The steps to a value, with the fields that the previous version describes."""

    field: str  # where the steps begin
    steps: Steps
    described: DescribedFields

    def to(self, step: str) -> "ValuePath":
        return self._replace(steps=(*self.steps, step))

    def __str__(self) -> str:
        return self.field + "".join(step if step == ITEM else f".{step}" for step in self.steps)


def matches(pattern: str, name: str) -> bool:
    return jsonschema_rs.is_valid({"pattern": pattern}, name)


def _within(keyword: str, value: Any) -> list[Any]:
    if keyword in ONE:
        return [value]
    if keyword in MANY:
        return list(value)
    return list(value.values()) if keyword in NAMED else []


def _meet(one: Steps, other: Steps) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a == b or ANY in (a, b) for a, b in pairs)
