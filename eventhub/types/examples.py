"""Generates an example of the attributes that a schema describes. Plain module.

The result need not satisfy the schema, for example one with a pattern: its caller checks it.
"""

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


def example_of(schema: Schema | bool, depth: int = 0) -> Any:
    """Return a value for an inlined schema: its first example, its default, constant or first
    choice, or one made of its parts.
    """
    if isinstance(schema, bool) or depth > limits.TYPE_SCHEMA_DEPTH_MAX:
        return {}
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    for keyword in ("default", "const"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("oneOf", "anyOf"):
        if schema.get(keyword):
            return example_of({**_without(schema, keyword), **schema[keyword][0]}, depth + 1)
    return _made(schema, depth)


def _made(schema: Schema, depth: int) -> Any:
    kind = _kind(schema)
    if kind == "object":
        found: dict[str, Any] = {}
        for part in schema.get("allOf", []):
            made = example_of(part, depth + 1)
            found |= made if isinstance(made, dict) else {}
        properties = schema.get("properties", {})
        return found | {name: example_of(one, depth + 1) for name, one in properties.items()}
    if kind == "array":
        return [example_of(schema.get("items", {}), depth + 1)] * max(schema.get("minItems", 1), 1)
    if kind == "string":
        return _text(schema)
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": True}.get(kind)


def _kind(schema: Schema) -> str:
    """Return the type of the value; without one, that of an object or a text."""
    kinds = schema.get("type", "object" if {"properties", "allOf"} & schema.keys() else "string")
    if isinstance(kinds, str):
        return kinds
    return next((kind for kind in kinds if kind != "null"), "null")


def _text(schema: Schema) -> str:
    text = _FORMATS.get(schema.get("format", ""), _TEXT)
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", len(text) * 100)]


def _number(schema: Schema) -> float:
    step = schema.get("multipleOf", 1)
    if "exclusiveMinimum" in schema:
        least = schema["exclusiveMinimum"] + step
    else:
        least = schema.get("minimum", min(schema.get("maximum", step), step))
    number: float = -(-least // step) * step
    return number


def _without(schema: Schema, keyword: str) -> Schema:
    return {name: value for name, value in schema.items() if name != keyword}
