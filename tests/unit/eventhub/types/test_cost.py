"""The cost of checking an event is known before the check."""

import asyncio
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.types.cost import Budget, CheckCost, cost_of
from eventhub.types.errors import TypeTooCostly
from eventhub.types.schemas import inlined


def work(schema: Any) -> CheckCost:
    return cost_of(inlined(schema, field="schema"))


def test_a_check_made_once_costs_less_than_a_check_of_each_value() -> None:
    asked: dict[str, Any] = {"allOf": [{"minimum": 0}] * 100}
    assert work({"properties": {"a": asked}}) == (0, 0)
    for keyword in ("items", "additionalProperties", "contains"):
        assert work({"properties": {"a": {keyword: asked}}}).values >= 100
    assert work({"patternProperties": {"^a": asked}}).values >= 100
    assert work({"items": {"enum": list(range(500))}}).values >= 500


@pytest.mark.parametrize(
    ("pattern", "most"), [("^[a-z]+$", 3), (r"^\p{L}+$", 5), ("[0-9a-f]{8}(-[0-9a-f]{4}){3}", 3)]
)
def test_patterns_that_are_in_few_places_at_once_cost_little(pattern: str, most: int) -> None:
    assert 1 <= work({"pattern": pattern}).text <= most


def test_patterns_that_are_in_many_places_at_once_cost_much() -> None:
    assert work({"pattern": "(?:[01]*1){300}2"}).text > 80


def test_a_large_event_is_counted_and_a_small_one_is_not() -> None:
    asked = CheckCost(10, 1)
    assert asked.of({}, 100) == 10 * 51 + 100  # taken for as many values as could be in it
    assert asked.of({"a": ["b", 1]}, 1_000_000) == 10 * 5 + 2


async def test_others_run_between_the_checks_of_a_request() -> None:
    """Each costly check is alone: one request after the other, with a turn for others between."""
    turn = asyncio.Lock()
    seen: list[str] = []

    async def request(name: str) -> None:
        async with Budget(turn) as budget:
            for _ in range(3):
                await budget.spend(limits.TYPE_WORK_PER_SLICE_MAX + 1)
                seen.append(name)

    async def other() -> None:
        for _ in range(3):
            seen.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(request("a"), request("b"), other())
    assert [name for name in seen if name != "other"] == ["a"] * 3 + ["b"] * 3
    assert "other" in seen[seen.index("a") : seen.index("b")]
    assert not turn.locked()


async def test_a_refused_request_releases_its_slot() -> None:
    turn = asyncio.Lock()
    with pytest.raises(TypeTooCostly):
        async with Budget(turn) as budget:
            for _ in range(1 + limits.TYPE_WORK_PER_REQUEST_MAX // limits.TYPE_WORK_PER_EVENT_MAX):
                await budget.spend(limits.TYPE_WORK_PER_EVENT_MAX)
    assert not turn.locked()
