"""Examples that are made from schemas satisfy them."""

import json
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.types.examples import example_of
from eventhub.types.schemas import compiled, inlined

SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "texts": {
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "string", "minLength": 20},
            "c": {"type": "string", "maxLength": 3},
            "d": {"type": "string", "format": "date-time"},
            "e": {"type": ["null", "string"], "format": "email"},
        },
        "required": ["a", "b", "c", "d", "e"],
    },
    "numbers": {
        "properties": {
            "a": {"type": "integer", "minimum": 3},
            "b": {"type": "number", "exclusiveMinimum": 3},
            "c": {"type": "integer", "maximum": -4},
            "d": {"type": "integer", "multipleOf": 5, "minimum": 7},
            "e": {"type": "number", "multipleOf": 1e-320, "minimum": 7},
        },
        "required": ["a", "b", "c", "d", "e"],
    },
    "bounds with a fraction of zero": {
        "properties": {
            "a": {"type": "string", "minLength": 20.0},
            "b": {"type": "string", "maxLength": 3.0},
            "c": {"type": "array", "minItems": 2.0},
        },
        "required": ["a", "b", "c"],
    },
    "choices": {
        "properties": {
            "a": {"enum": ["x", "y"]},
            "b": {"const": 7},
            "c": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "d": {"type": "boolean"},
            "e": {"oneOf": [True]},
        },
        "required": ["a", "b", "c", "d"],
    },
    "nested": {
        "$defs": {"item": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "properties": {
            "items": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/item"}},
            "more": {"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}]},
        },
        "required": ["items", "more"],
    },
    "an example": {
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}$"}},
        "examples": [{"code": "ABC"}],
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_example_satisfies_its_schema(name: str) -> None:
    schema = inlined(SCHEMAS[name], field="schema")
    found = example_of(schema) if name != "nothing" else {}
    compiled(schema, field="schema").validate(found)
    assert set(found) >= set(schema.get("required", []))


def _nested(levels: int, items: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 50}
    for _ in range(levels):
        schema = {"type": "array", "minItems": items, "items": schema}
    return {"properties": {"a": schema, "b": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"minLength": 10_000_000, "maxLength": 10_000_000}}},
        {"properties": {"a": {"type": "array", "minItems": 10_000_000}}},
        _nested(2, 1_000),
        _nested(20, 2),
        {"properties": {str(n): {"minLength": 50_000, "maxLength": 50_000} for n in range(100)}},
    ],
    ids=["text", "array", "array of arrays", "deep arrays", "many texts"],
)
def test_the_size_of_an_example_is_bounded(schema: dict[str, Any]) -> None:
    """A schema of 40 bytes asked for gigabytes."""
    made = json.dumps(example_of(inlined(schema, field="schema")))
    assert len(made) < 10 * limits.EXAMPLE_SIZE_MAX
