"""Generates an example of the attributes that a schema describes. Plain module.

The result need not satisfy the schema, for example one with a pattern, or one that asks for more
than the hub generates (`EXAMPLE_…_MAX`): its caller checks it.
"""

import math
from typing import Any

from eventhub.base import limits
from eventhub.types.schemas import Schema

_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "duration": "PT1S",
    "email": "someone@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "00:00:00Z",
    "uri": "https://example.org/",
    "uri-reference": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_TEXT = "example"


def example_of(schema: Schema | bool) -> Any:
    """Return a value for an inlined schema: its first example, its default, constant or first
    choice, or one made of its parts.
    """
    return _Maker().value(schema, 0)


class _Maker:
    """Makes one example; `left`: how many more values and characters lists and texts may get."""

    def __init__(self) -> None:
        self._left = limits.EXAMPLE_SIZE_MAX

    def value(self, schema: Schema | bool, depth: int) -> Any:
        self._left -= 1
        if isinstance(schema, bool) or depth > limits.TYPE_SCHEMA_DEPTH_MAX:
            return {}
        for keyword in ("examples", "enum"):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                return self._stored(schema[keyword][0])
        for keyword in ("default", "const"):
            if keyword in schema:
                return self._stored(schema[keyword])
        for keyword in ("oneOf", "anyOf"):
            if schema.get(keyword):
                first = schema[keyword][0]
                chosen = first if isinstance(first, dict) else {}
                return self.value({**_without(schema, keyword), **chosen}, depth + 1)
        return self._made(schema, depth)

    def _stored(self, value: Any) -> Any:
        self._left -= len(str(value))
        return value

    def _made(self, schema: Schema, depth: int) -> Any:
        kind = _kind(schema)
        if kind == "object":
            found: dict[str, Any] = {}
            for part in schema.get("allOf", []):
                made = self.value(part, depth + 1)
                found |= made if isinstance(made, dict) else {}
            properties = schema.get("properties", {})
            return found | {name: self.value(one, depth + 1) for name, one in properties.items()}
        if kind == "array":
            return self._list(schema, depth)
        if kind == "string":
            return self._text(schema)
        if kind in ("integer", "number"):
            return _number(schema)
        return {"boolean": True}.get(kind)

    def _list(self, schema: Schema, depth: int) -> list[Any]:
        before = self._left
        item = self.value(schema.get("items", {}), depth + 1)
        size = before - self._left
        more = min(schema.get("minItems", 1), limits.EXAMPLE_ITEMS_MAX) - 1
        more = max(int(min(more, self._left // size)), 0)
        self._left -= more * size
        return [item] * (1 + more)

    def _text(self, schema: Schema) -> str:
        text = _FORMATS.get(schema.get("format", ""), _TEXT)
        length = max(min(schema.get("minLength", 0), self._left), 0)
        text = text.ljust(int(length), "x")
        text = text[: int(min(schema.get("maxLength", len(text)), len(text)))]
        self._left -= len(text)
        return text


def _kind(schema: Schema) -> str:
    """Return the type of the value; without one, that of an object or a text."""
    kinds = schema.get("type", "object" if {"properties", "allOf"} & schema.keys() else "string")
    if isinstance(kinds, str):
        return kinds
    return next((kind for kind in kinds if kind != "null"), "null")


def _number(schema: Schema) -> float:
    step = schema.get("multipleOf", 1)
    if "exclusiveMinimum" in schema:
        least: float = schema["exclusiveMinimum"] + step
    else:
        least = schema.get("minimum", min(schema.get("maximum", step), step))
    number: float = -(-least // step) * step
    return number if math.isfinite(number) else least


def _without(schema: Schema, keyword: str) -> Schema:
    return {name: value for name, value in schema.items() if name != keyword}
