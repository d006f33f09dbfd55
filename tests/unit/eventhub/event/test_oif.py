"""OIF's string format (OIF-13)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import errors, limits
from eventhub.event import oif
from eventhub.event.envelope import Event
from eventhub.event.errors import NotRepresentable
from eventhub.event.inbound import stored_bytes
from eventhub.event.protobuf_codec import decode

EXAMPLE = "userid: Fred; time: 12:40:18; type: error; message: read unhappy maknam"
FOUR = {
    "userid": "Fred",
    "time": "12:40:18",
    "type": "error",
    "message": "read unhappy maknam",
}


def taken(text: str) -> Event:
    [event] = oif.read(text.encode())
    return decode(stored_bytes(event, client="c", mask=1))


@pytest.mark.req("OIF-13")
def test_the_example_has_four_properties_and_survives_a_round_trip() -> None:
    event = taken(EXAMPLE)
    assert event.attributes == FOUR
    assert (event.domain, event.type) == ("oif", "error")
    assert oif.write(event) == EXAMPLE
    assert taken(oif.write(event)) == event


NAMES = st.text(st.characters(codec="utf-8", exclude_characters=":;\r\n"), max_size=9).filter(
    lambda text: text == text.strip() != "" and not text.endswith("$ref")
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters=";\r\n"), max_size=9).filter(
    lambda text: text == text.strip() and text[:1] not in ("{", "<")
)
TARGETS = st.sampled_from(
    ["https://host/pumps/7", "corbaloc:iiop:host:2809/NameService;a", "urn:é"]
)
INSIDE = st.recursive(
    VALUES.filter(lambda text: "}" not in text) | st.builds(lambda uri: {"$ref": uri}, TARGETS),
    lambda inner: st.dictionaries(NAMES.filter(lambda n: "}" not in n), inner),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES | INSIDE, min_size=1, max_size=5))
def test_representable_attributes_survive_a_round_trip(attributes: dict[str, Any]) -> None:
    assert taken(oif.write(Event("d", "t", attributes))).attributes == attributes


@pytest.mark.parametrize("value", ["a;b", "a\nb", " a", "a ", [1], None, "{b", "<b"])
def test_an_unrepresentable_event_is_refused_and_not_changed(value: object) -> None:
    with pytest.raises(NotRepresentable) as caught:
        oif.write(Event("d", "t", {"fine": "x", "bad": value}))
    assert caught.value.field == "bad"


@pytest.mark.parametrize("name", ["a:b", "a;b", "", " a", "a\nb"])
def test_a_name_that_is_not_representable_is_refused(name: str) -> None:
    with pytest.raises(NotRepresentable):
        oif.write(Event("d", "t", {name: "x"}))


@pytest.mark.parametrize("value", ["}", "a;b", [], None, {"d": "}"}, {"}": "x"}])
def test_an_unrepresentable_value_in_an_event_inside_is_refused_by_its_path(value: object) -> None:
    with pytest.raises(NotRepresentable) as caught:
        oif.write(Event("d", "t", {"fine": "}", "bad": {"c": value}}))
    assert str(caught.value.field).startswith("bad.c")


def test_numbers_and_booleans_become_texts() -> None:
    assert oif.write(Event("d", "t", {"n": 1, "f": 2.5, "b": True})) == "n: 1; f: 2.5; b: true"


@pytest.mark.parametrize(
    ("text", "index", "field"),
    [
        ("a: 1; b", 0, "property 1"),
        ("a: 1\n: 2", 1, "property 0"),
        ("a: 1; a: 2", 0, "property 1"),
        (";", 0, "property 0"),
        ("a: 1; b: {c: 1; d}", 0, "property 1.1"),
        ("a: {b: {c: 1; c: 2}}", 0, "property 0.0.1"),
        ("a: {b: 1", 0, "property 0.0"),
        ("a: {", 0, "property 0.0"),
        ("a: {b: 1} c; d: 2", 0, "property 0"),
        ("a: 1; b: <urn:x", 0, "property 1"),
        ("a: <urn:x> y", 0, "property 0"),
    ],
)
def test_an_invalid_property_is_reported_by_index(text: str, index: int, field: str) -> None:
    with pytest.raises(errors.InvalidField) as caught:
        oif.read(text.encode())
    assert (caught.value.index, caught.value.field) == (index, field)


@pytest.mark.req("OIF-15")
@pytest.mark.parametrize("value", ["{a: 1}", "<urn:x>"])
def test_a_value_nested_too_deeply_is_refused_as_oif(value: str) -> None:
    levels = limits.JSON_DEPTH_MAX - 1  # the attributes are one more
    deepest = f"{'a: {' * (levels - 1)}a: {value}{'}' * (levels - 1)}"
    assert taken(deepest).attributes
    with pytest.raises(errors.TooDeep, match="OIF") as caught:
        taken(f"a: {{{deepest}}}")
    assert caught.value.field == f"property {'.'.join('0' * (levels + 1))}"


def test_each_line_is_an_event() -> None:
    assert [event.attributes for event in oif.read(b"\na: 1;\r\n\nb: 2\n")] == [
        {"a": "1"},
        {"b": "2"},
    ]


def test_other_encodings_are_refused() -> None:
    with pytest.raises(errors.InvalidUtf8):
        oif.read(b"a: \xff")
