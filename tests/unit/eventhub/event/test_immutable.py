"""Copies of events, compared where filters read an immutable property (FOX-05)."""

from typing import Any

import pytest

from eventhub.event.errors import ImmutableProperty
from eventhub.event.immutable import require_unchanged

EVENT = {"n": {"x": 1, "y": 1}}


@pytest.mark.req("FOX-05")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EVENT, {"n": {"x": 2}}),
        (EVENT, {**EVENT, "n.x": 9}),
        ({**EVENT, "n.x": 9}, EVENT),
        (EVENT, {**EVENT, "n.x.z": 9}),
        ({"n": [{"x": 1}, {"y": 1}]}, {"n": [{"x": 2}, {"y": 1}]}),
        ({"n": [{"x": 1}]}, {"n": [{"x": 1}, {"x": 2}]}),
    ],
)
def test_a_copy_that_filters_read_differently_is_refused(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    with pytest.raises(ImmutableProperty) as caught:
        require_unchanged(before, after, ["n.x"])
    assert caught.value.field == "attributes.n.x"


def test_other_attributes_of_a_copy_may_change() -> None:
    after = {"n": {"x": 1.0, "y": 2}, "n.y": 9, "n.xx": 9, "m.x": 9}
    require_unchanged(EVENT, after, ["n.x", "o"])
    require_unchanged({"a.b": {"c": 1, "d": 1}}, {"a.b": {"c": 1, "d": 2}}, ["a.b.c"])
    with pytest.raises(ImmutableProperty):
        require_unchanged({"a.b": {"c": 1}}, {"a.b": {"c": 2}}, ["a.b.c"])
