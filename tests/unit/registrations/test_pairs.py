"""The pairs language: subset and equality of typed values, nothing of the body."""

from typing import Any

import pytest

from eventhub.base import errors, limits
from eventhub.event.envelope import Event
from registrations.filters.pairs import parse_pairs

SUN = Event(
    "cluster",
    "resource group state",
    {"resource group name": "foo", "node": "node", "state": "online"},
)
DEEP = Event(
    "d",
    "t",
    {
        "a": {"b": {"c": 1, "none": None}, "b.c": 2},
        "a.b.c": 3,
        "x": {"y": True},
        "n": 1,
        "zero": 0,
        "list": [1],
    },
)


@pytest.mark.parametrize(
    ("attributes", "matches"),
    [
        ({}, True),
        ({"state": "online"}, True),
        ({"state": "online", "node": "node"}, True),
        ({"state": "online", "colour": "red"}, False),
        ({"state": "offline"}, False),
        ({"resource group name": "foo"}, True),
        ({"resource": "foo"}, False),
    ],
)
def test_the_pairs_are_a_subset_of_the_events(attributes: dict[str, Any], matches: bool) -> None:
    assert parse_pairs({"attributes": attributes}).matches(SUN) == matches


@pytest.mark.parametrize(
    ("path", "value", "matches"),
    [
        ("n", 1, True),
        ("n", 1.0, True),
        ("n", "1", False),
        ("n", True, False),
        ("x.y", True, True),
        ("x.y", 1, False),
        ("x.y", "true", False),
        ("zero", False, False),
        ("zero", 0, True),
        ("zero", None, False),
        ("missing", None, False),
        ("a.b.none", None, True),
        ("a.b.c", 3, True),  # the exact name first
        ("a.b.c", 1, False),
        ("a.b", 1, False),
        ("x.y.z", True, False),
        ("n.x", 1, False),
        ("list", 1, True),
        ("list", 2, False),
        ("", 1, False),
        (".", 1, False),
    ],
)
def test_values_keep_their_type_and_names_are_paths(path: str, value: Any, matches: bool) -> None:
    assert parse_pairs({"attributes": {path: value}}).matches(DEEP) == matches


def test_a_dotted_path_reaches_nested_values() -> None:
    event = Event("d", "t", {"a": {"b": {"c": 1}}})
    assert parse_pairs({"attributes": {"a.b.c": 1}}).matches(event)


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({"domain": "cluster"}, True),
        ({"domain": "Cluster"}, False),
        ({"type": "resource group state"}, True),
        ({"type": "resource group"}, False),
        ({"type": "node state", "attributes": {"state": "online"}}, False),
    ],
)
def test_domain_and_type_are_equal_as_a_whole(fields: dict[str, Any], matches: bool) -> None:
    assert parse_pairs(fields).matches(SUN) == matches


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"body": {"a": 1}}, errors.BodyNotFilterable, "body"),
        ({"body_base64": "YQ=="}, errors.BodyNotFilterable, "body_base64"),
        ({"colour": 1}, errors.UnknownField, "colour"),
        ({"attributes": [1]}, errors.InvalidField, "attributes"),
        ({"attributes": {"a": [1]}}, errors.InvalidField, "attributes.a"),
        ({"attributes": {"a": {}}}, errors.InvalidField, "attributes.a"),
        ({"domain": 1}, errors.InvalidField, "domain"),
        ({"attributes": {"a" * (limits.PATH_CHARS_MAX + 1): 1}}, errors.FieldTooLong, "attributes"),
        ({"type": ""}, errors.InvalidField, "type"),
        ({"type": "x" * (limits.TEXT_CHARS_MAX + 1)}, errors.FieldTooLong, "type"),
        (
            {"attributes": {str(n): n for n in range(limits.PAIRS_MAX + 1)}},
            errors.FieldTooLong,
            "attributes",
        ),
    ],
)
def test_an_invalid_pair_is_refused_with_its_field(
    fields: dict[str, Any], error: type[errors.EventHubError], field: str
) -> None:
    with pytest.raises(error) as caught:
        parse_pairs(fields)
    assert caught.value.field == field


def test_a_filter_without_pairs_matches_every_event() -> None:
    assert parse_pairs({}).everything
    assert parse_pairs({"attributes": None, "domain": None}).everything
    assert not parse_pairs({"attributes": {"a": None}}).everything
