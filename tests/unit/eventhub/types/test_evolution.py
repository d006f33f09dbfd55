"""Compatibility of new versions of a type with the previous one (RDY-15)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.types.evolution import breaks
from eventhub.types.schemas import compiled, inlined

BASE = {
    "type": "object",
    "required": ["priority"],
    "properties": {
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "kind": {"enum": ["a", "b"]},
        "place": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    },
}


def changed(**properties: Any) -> dict[str, Any]:
    return {**BASE, "properties": {**BASE["properties"], **properties}}  # type: ignore[dict-item]


def found(old: Any, new: Any) -> list[str]:
    return breaks(inlined(old, field="s"), inlined(new, field="s"), "attributes")


FINE: dict[str, Any] = {
    "the same": BASE,
    "an optional field": changed(site={"type": "string"}),
    "an optional field that may be nothing else": changed(site={"enum": [1]}),
    "wider bounds": changed(priority={"type": "integer", "minimum": 0, "maximum": 9}),
    "no bounds": changed(priority={"type": "integer"}),
    "any number": changed(priority={"type": "number", "minimum": 1}),
    "another type too": changed(priority={"type": ["integer", "string"]}),
    "one value more": changed(kind={"enum": ["c", "b", "a"]}),
    "any value": changed(kind=True),
    "nothing is required": {**BASE, "required": []},
    "a description": {**BASE, "title": "T", "x-team": "ops"},
    "longer texts within": changed(
        place={"type": "object", "properties": {"city": {"type": "string", "maxLength": 99}}}
    ),
    "any items": changed(tags={"type": "array"}),
    "a length of none": changed(tags={"type": "array", "minItems": 0, "items": {}}),
}


@pytest.mark.parametrize("new", FINE.values(), ids=FINE)
def test_a_version_that_takes_more_breaks_nothing(new: Any) -> None:
    assert found(BASE, new) == []


BROKEN: dict[str, tuple[Any, Any, str]] = {
    "a required field": (
        BASE,
        {**BASE, "required": ["priority", "site"]},
        "attributes.site: is required now",
    ),
    "a lower maximum": (
        BASE,
        changed(priority={"type": "integer", "minimum": 1, "maximum": 4}),
        "attributes.priority: `maximum` is 4 now",
    ),
    "a bound that was not there": (
        BASE,
        changed(tags={"type": "array", "items": {"type": "string"}, "maxItems": 3, "minItems": 1}),
        "attributes.tags: `minItems` is 1 now",
    ),
    "exclusive zero": (
        {"properties": {"n": True}},
        {"properties": {"n": {"exclusiveMinimum": 0}}},
        "attributes.n: `exclusiveMinimum` is 0 now",
    ),
    "another type": (
        BASE,
        changed(priority={"type": "string"}),
        "attributes.priority: `type` is only string now",
    ),
    "only whole numbers": (
        {"properties": {"n": {"type": "number"}}},
        {"properties": {"n": {"type": "integer"}}},
        "attributes.n: `type` is only integer now",
    ),
    "a value less": (
        BASE,
        changed(kind={"enum": ["a"]}),
        "attributes.kind: fewer values are allowed",
    ),
    "values where any were allowed": (
        {"properties": {"n": {"type": "string"}}},
        {"properties": {"n": {"type": "string", "enum": ["a", "b"]}}},
        "attributes.n: fewer values are allowed",
    ),
    "one value where any was allowed": (
        {"properties": {"n": True}},
        {"properties": {"n": {"const": "a"}}},
        "attributes.n: fewer values are allowed",
    ),
    "one for true": (
        {"properties": {"n": {"const": True}}},
        {"properties": {"n": {"const": 1}}},
        "attributes.n: fewer values are allowed",
    ),
    "within": (
        BASE,
        changed(place={"type": "object", "properties": {"city": {"type": "integer"}}}),
        "attributes.place.city: `type` is only integer now",
    ),
    "items": (
        BASE,
        changed(tags={"type": "array", "items": {"type": "integer"}}),
        "attributes.tags[]: `type` is only integer now",
    ),
    "nothing undeclared": (
        BASE,
        {**BASE, "additionalProperties": False},
        "attributes: fields that are not declared are no longer allowed",
    ),
    "a field goes where nothing undeclared is": (
        {"properties": {"a": True}, "additionalProperties": False},
        {"properties": {}, "additionalProperties": False},
        "attributes.a: is no longer allowed",
    ),
    "undeclared fields are texts": (
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        "attributes.*: `type` is only string now",
    ),
    "a field that was free within bounds": (
        {"additionalProperties": {"type": "string"}},
        {"additionalProperties": {"type": "string"}, "properties": {"a": {"type": "integer"}}},
        "attributes.a: `type` is only integer now",
    ),
    "a pattern": (
        {"properties": {"a": {"pattern": "a"}}},
        {"properties": {"a": {"pattern": "b"}}},
        "attributes.a: `pattern` has changed",
    ),
    "immutable": (
        {"properties": {"a": True}},
        {"properties": {"a": {"readOnly": True}}},
        "attributes.a: `readOnly` is set now",
    ),
    "what is not understood": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"then": {"required": ["b"]}},
        "attributes: `if` has changed",
    ),
    "one way less": (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"anyOf": [{"required": ["a"]}]},
        "attributes: `anyOf` accepts less",
    ),
    "one more thing": (
        {"allOf": [{"required": ["a"]}]},
        {"allOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "attributes: `allOf` requires more",
    ),
    "a field that a pattern named": (
        {"patternProperties": {"^x": {"type": "integer"}}},
        {"patternProperties": {"^x": {"type": "integer"}}, "properties": {"xa": {"type": "null"}}},
        "attributes.xa: `type` is only null now",
    ),
    "a field that is named beside": (
        {"allOf": [{"properties": {"a": {"type": "integer"}}}]},
        {
            "allOf": [{"properties": {"a": {"type": "integer"}}}],
            "properties": {"a": {"type": "null"}},
        },
        "attributes.a: `type` is only null now",
    ),
    "a field of what a pattern named": (
        {
            "patternProperties": {"^x": {"properties": {"b": {"type": "integer"}}}},
            "properties": {"xa": {"maxProperties": 9}},
        },
        {
            "patternProperties": {"^x": {"properties": {"b": {"type": "integer"}}}},
            "properties": {"xa": {"maxProperties": 9, "properties": {"b": {"type": "null"}}}},
        },
        "attributes.xa.b: `type` is only null now",
    ),
    "in a definition": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"n": {"maximum": 2}}}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"n": {"maximum": 1}}}}},
        "attributes.n: `maximum` is 1 now",
    ),
}


def test_a_field_that_a_pattern_names_may_be_named_as_it_was() -> None:
    old = {"patternProperties": {"^x": {"type": "integer"}}}
    assert found(old, {**old, "properties": {"xa": {"type": "number"}}}) == []
    assert found(old, {**old, "properties": {"ya": {"type": "null"}}}) == []


@pytest.mark.parametrize(("old", "new", "line"), BROKEN.values(), ids=BROKEN)
def test_a_breaking_change_is_named(old: Any, new: Any, line: str) -> None:
    assert found(old, new) == [line]


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "abc"]))
SIMPLE = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["integer", "number", "string", ["string", "null"], "boolean"]),
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "multipleOf": st.integers(1, 3),
    },
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "properties": st.dictionaries(st.sampled_from("abc"), SIMPLE),
        "additionalProperties": st.booleans() | SIMPLE,
    },
)


@given(OBJECTS, OBJECTS, st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=20))
def test_a_compatible_change_accepts_every_event_accepted_before(
    old: dict[str, Any], new: dict[str, Any], values: list[dict[str, Any]]
) -> None:
    """But for fields that the new version is the first to declare: nobody sent them."""
    if found(old, new):
        return
    was, now = (compiled(inlined(one, field="s"), field="s") for one in (old, new))
    added = new.get("properties", {}).keys() - old.get("properties", {}).keys()
    for value in values:
        if not added & value.keys() and was.is_valid(value):
            assert now.is_valid(value), value
