"""The number of the lane of an event that is delivered in the order of a key."""

from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.endpoints.order_key import lane_number, order_path


def number(attributes: dict[str, Any], path: str = "customer.id", **fields: Any) -> int:
    return lane_number(7, Event("shop", "order", attributes, **fields), order_path(path))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"customer": {"id": 5}}, {"customer": {"id": 5.0}, "n": 2}),
        ({"customer": {"id": 5}}, {"customer.id": 5}),  # the exact name comes first
        ({}, {"customer": {"id": None}}),
        ({}, {"customer": 3}),
        ({"customer": {"id": {"a": 1, "b": 2}}}, {"customer": {"id": {"b": 2, "a": 1}}}),
    ],
)
def test_equal_values_have_the_same_lane(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert number(one) == number(other)


def test_different_values_have_different_lanes_below_zero() -> None:
    values = [*range(500), *map(str, range(500)), True, False, None, [1], [2], {"a": 1}]
    numbers = {number({"customer": {"id": value}}) for value in values}
    assert len(numbers) == len(values)
    assert all(-(2**63) <= each < 0 for each in numbers)


def test_the_key_of_the_envelope_and_the_stream_count() -> None:
    path = order_path("@key")
    one, other = Event("d", "t", {}, key="a"), Event("d", "t", {"n": 1}, key="a")
    assert lane_number(7, one, path) == lane_number(7, other, path)
    assert lane_number(7, one, path) != lane_number(8, one, path)
    assert lane_number(7, one, path) != lane_number(7, Event("d", "t", {}, key="b"), path)
