"""The supported part of JSON Schema; no definition and no event can harm the hub with it."""

import json
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.types.errors import InvalidSchema
from eventhub.types.schemas import compiled, immutable, inlined, require_read_only_properties


def check(schema: Any, value: Any) -> bool:
    return compiled(inlined(schema, field="schema"), field="schema").is_valid(value)


def doubling(levels: int) -> dict[str, Any]:
    """Return a schema each of whose definitions refers twice to the next."""
    definitions: dict[str, Any] = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        found = {"properties": {"a": found}}
    return found


REFUSED: list[tuple[Any, str]] = [
    ("text", "schema"),
    (True, "schema"),
    ({"$ref": "http://127.0.0.1:1/schema"}, "schema.$ref"),
    ({"$ref": "file:///etc/passwd"}, "schema.$ref"),
    ({"$ref": "#"}, "schema.$ref"),
    ({"$ref": "#/properties/a", "properties": {"a": True}}, "schema.$ref"),
    ({"$ref": "#/$defs/none"}, "schema.$ref"),
    ({"$ref": 5}, "schema.$ref"),
    ({"$id": "http://example.com/x"}, "schema.$id"),
    ({"$dynamicRef": "#x"}, "schema.$dynamicRef"),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, "schema.$schema"),
    ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": []}, "schema.$defs"),
    ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "schema.$defs.a.$ref.$ref"),
    (
        {"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}},
        "schema.$defs.a.not.$ref.items.$ref.not.$ref",
    ),
    ({"mininum": 1}, "schema.mininum"),
    ({"properties": []}, "schema.properties"),
    ({"allOf": {}}, "schema.allOf"),
    ({"properties": {"a": 5}}, "schema.properties.a"),
    ({"properties": {"a": {"pattern": "(?=a)b"}}}, "schema.properties.a.pattern"),
    ({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}, "schema.properties.a.pattern"),
    ({"properties": {"a": {"pattern": "("}}}, "schema.properties.a.pattern"),
    ({"properties": {"a": {"format": "regex"}}}, "schema.properties.a.format"),
    ({"type": "text"}, "schema.type"),
    ({"minLength": -1}, "schema.minLength"),
    ({"required": "a"}, "schema.required"),
]


@pytest.mark.parametrize(("schema", "field"), REFUSED)
def test_an_unsupported_schema_is_refused_with_its_path(schema: Any, field: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        check(schema, {})
    assert caught.value.field == field


@pytest.mark.parametrize("schema", [doubling(40), doubling(12), nested(40)])
def test_a_schema_that_would_cost_much_is_refused(schema: dict[str, Any]) -> None:
    assert len(json.dumps(schema)) < limits.TYPE_SCHEMA_BYTES_MAX
    with pytest.raises(InvalidSchema):
        check(schema, {})


def test_references_within_the_schema_are_written_out() -> None:
    schema = {
        "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
        "$defs": {"place": {"type": "object", "required": ["city"]}, "un~0us/ed": True},
    }
    assert check(schema, {"from": {"city": "Basel"}, "to": {"city": "Bern"}})
    assert not check(schema, {"from": {"city": "Basel"}, "to": {}})
    assert "$ref" not in json.dumps(inlined(schema, field="schema"))


def test_keywords_next_to_a_reference_apply() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "allOf": [{"required": ["y"]}],
        "$defs": {"a": {"required": ["x"]}},
    }
    assert [check(schema, value) for value in ({"x": 1, "y": 1}, {"x": 1}, {"y": 1})] == [
        True,
        False,
        False,
    ]


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "$id": True}, "const": {"$ref": "#"}}
    assert check(schema, {"$ref": "#"})
    assert not check(schema, {"$ref": "x"})


def test_formats_are_checked() -> None:
    schema = {"properties": {"at": {"format": "date-time"}}}
    assert check(schema, {"at": "2026-11-21T08:00:00Z"})
    assert not check(schema, {"at": "yesterday"})


READ_ONLY: dict[str, Any] = {"readOnly": True}


@pytest.mark.req("FOX-05")
@pytest.mark.parametrize(
    ("schema", "field"),
    [
        (READ_ONLY, ""),
        ({"properties": {"a": {"items": READ_ONLY}}}, "properties.a.items."),
        (
            {"properties": {"a": {"items": {"properties": {"b": READ_ONLY}}}}},
            "properties.a.items.properties.b.",
        ),
        ({"anyOf": [{}, {"properties": {"a": READ_ONLY}}]}, "anyOf[1].properties.a."),
        ({"patternProperties": {"^a": READ_ONLY}}, "patternProperties.^a."),
    ],
)
def test_read_only_where_nothing_would_keep_the_value_is_refused(
    schema: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidSchema) as caught:
        require_read_only_properties(inlined(schema, field="schema"), "schema")
    assert caught.value.field == f"schema.{field}readOnly"


def test_immutable_properties_are_found_wherever_they_stand() -> None:
    schema = {
        "properties": {
            "id": {"readOnly": True},
            "size": {"readOnly": False},
            "place": {"properties": {"city": {"readOnly": True}}},
        },
        "allOf": [{"$ref": "#/$defs/more"}],
        "$defs": {"more": {"properties": {"origin": {"readOnly": True}}}},
    }
    found = inlined(schema, field="schema")
    assert sorted(immutable(found)) == ["id", "origin", "place.city"]
    require_read_only_properties(found, "schema")
