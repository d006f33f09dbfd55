"""Transformers chosen by application, which leave immutable properties alone (FOX-03, FOX-05)."""

from typing import Any

import pytest
from eventhub_client.transform import Switch

from eventhub.base.errors import InvalidField
from eventhub.event.errors import ImmutableProperty

SWITCH = Switch.of(
    {
        "billing": [
            {"rename": {"total": "money.amount"}},
            {"set": {"money.currency": "CHF"}},
            {"remove": ["internal.note", "nothing"]},
        ],
        "swap": [{"rename": {"a": "b", "b": "a"}}],
        "*": [{"set": {"seen": True}}],
    }
)


def event(*application: str, **attributes: Any) -> dict[str, Any]:
    return {"domain": "d", "type": "t", "application": application, "attributes": attributes}


@pytest.mark.req("FOX-03")
def test_the_transformer_is_chosen_by_the_application() -> None:
    given = event("shop", "billing", total=5, internal={"note": "x", "kept": 1})
    assert SWITCH.apply(given)["attributes"] == {
        "money": {"amount": 5, "currency": "CHF"},
        "internal": {"kept": 1},
    }
    assert given["attributes"]["total"] == 5, "the event itself does not change"
    assert SWITCH.apply(event("swap", a=1, b=2))["attributes"] == {"a": 2, "b": 1}
    assert SWITCH.apply(event("shop", a=1))["attributes"] == {"a": 1, "seen": True}
    assert SWITCH.apply(event(a=1))["attributes"] == {"a": 1, "seen": True}
    assert Switch.of({"billing": []}).apply(event("shop", a=1)) == event("shop", a=1)


@pytest.mark.req("FOX-05")
@pytest.mark.parametrize(
    "step",
    [
        {"set": {"origin.city": "Bern"}},
        {"set": {"origin": 1}},
        {"remove": ["origin.city"]},
        {"remove": ["origin"]},
        {"rename": {"origin.city": "town"}},
        {"rename": {"other": "origin"}},
    ],
)
def test_an_immutable_property_may_not_be_changed_on_the_way(step: dict[str, Any]) -> None:
    switch = Switch.of({"*": [step]})
    given = event(origin={"city": "Basel"}, other={"city": "Genf"})
    assert switch.apply(given)["attributes"] != given["attributes"]
    with pytest.raises(ImmutableProperty) as caught:
        switch.apply(given, ["origin.city"])
    assert caught.value.field == "attributes.origin.city"


def test_an_immutable_property_may_not_be_made_on_the_way() -> None:
    with pytest.raises(ImmutableProperty):
        Switch.of({"*": [{"set": {"origin": 1}}]}).apply(event(), ["origin"])


def test_one_is_not_true() -> None:
    with pytest.raises(ImmutableProperty):
        Switch.of({"*": [{"set": {"flag": 1}}]}).apply(event(flag=True), ["flag"])


def test_a_transformation_that_leaves_immutable_properties_unchanged_is_allowed() -> None:
    switch = Switch.of({"*": [{"set": {"origin.city": "Basel"}}, {"remove": ["other"]}]})
    given = event(origin={"city": "Basel"}, other=1)
    assert switch.apply(given, ["origin.city"])["attributes"] == {"origin": {"city": "Basel"}}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([], None),
        ({"a": {}}, "a"),
        ({"a": [{}]}, "a[0]"),
        ({"a": [{"set": {}}, {"set": {}, "remove": []}]}, "a[1]"),
        ({"a": [{"drop": ["x"]}]}, "a[0].drop"),
        ({"a": [{"remove": "x"}]}, "a[0].remove"),
        ({"a": [{"rename": {"x": 5}}]}, "a[0].rename"),
    ],
)
def test_a_bad_switch_is_refused_at_its_place(given: Any, field: str | None) -> None:
    with pytest.raises(InvalidField) as caught:
        Switch.of(given)
    assert caught.value.field == field
