"""Examples that are made from schemas satisfy them."""

from typing import Any

import pytest

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
        },
        "required": ["a", "b", "c", "d"],
    },
    "choices": {
        "properties": {
            "a": {"enum": ["x", "y"]},
            "b": {"const": 7},
            "c": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "d": {"type": "boolean"},
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
