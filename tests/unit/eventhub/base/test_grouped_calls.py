"""Calls that wait while others are under way are made together, each with its own result."""

import asyncio
from collections.abc import Sequence

import pytest

from eventhub.base.grouped_calls import GroupedCalls


class Doubling:
    """Doubles numbers, a group at a time, when it is let go on."""

    def __init__(self, size_max: int = 10) -> None:
        self.groups: list[list[int]] = []
        self.go_on = asyncio.Event()
        self.calls = GroupedCalls(self._double, size_max)

    async def _double(self, numbers: Sequence[int]) -> list[int]:
        self.groups.append(list(numbers))
        await self.go_on.wait()
        if 13 in numbers:
            raise ValueError("13")
        return [2 * number for number in numbers]


async def test_calls_that_wait_are_made_together() -> None:
    doubling = Doubling(size_max=3)
    first = doubling.calls.submit(1)
    await asyncio.sleep(0)
    others = [doubling.calls.submit(number) for number in (2, 2, 3, 4)]
    doubling.go_on.set()
    assert await asyncio.gather(first, *others) == [2, 4, 4, 6, 8]
    assert doubling.groups == [[1], [2, 2, 3], [4]]
    assert await doubling.calls.submit(5) == 10, "a call after a pause"


async def test_a_failed_group_fails_its_calls_only() -> None:
    doubling = Doubling(size_max=2)
    futures = [doubling.calls.submit(number) for number in (1, 13, 2)]
    doubling.go_on.set()
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert [type(result) for result in results] == [ValueError, ValueError, int]


async def test_a_cancelled_call_is_left_out_and_harms_no_other() -> None:
    doubling = Doubling()
    waiting = [asyncio.create_task(_result(doubling, number)) for number in (1, 2, 3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    doubling.go_on.set()
    assert await waiting[0] == 2
    assert await waiting[2] == 6
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    assert doubling.groups == [[1, 3]]


async def _result(doubling: Doubling, number: int) -> int:
    return await doubling.calls.submit(number)
