"""The time slices of pattern groups: long work leaves time to short work, and else takes all."""

import asyncio
import time
from collections.abc import Iterator

from delivery.patterns.turns import GroupTurns
from eventhub.base import limits

STEP_S = limits.PATTERN_SLICE_S / 4
STEPS = 80  # 20 slices


class Long:
    """Work that takes processor time. `busy_s`: how long it ran."""

    def __init__(self) -> None:
        self.busy_s = 0.0

    def steps(self) -> Iterator[None]:
        for _ in range(STEPS):
            began_s = time.monotonic()
            while time.monotonic() < began_s + STEP_S:
                pass
            self.busy_s += time.monotonic() - began_s
            yield


async def share_of_long_work(*, with_short: bool, is_urgent: bool = False) -> float:
    """Return the share of the time in which long work ran."""
    turns, long = GroupTurns(), Long()
    if with_short:
        await turns.run(1, iter([None]))
    began_s = time.monotonic()
    await turns.run(2, long.steps(), is_urgent=is_urgent)
    return long.busy_s / (time.monotonic() - began_s)


def test_long_work_takes_a_fifth_of_the_time_while_others_have_short_work() -> None:
    share = asyncio.run(share_of_long_work(with_short=True))
    assert share < 1.3 / (1 + limits.PATTERN_SLICE_PAUSE)


def test_long_work_alone_takes_all_of_the_time() -> None:
    shares = (asyncio.run(share_of_long_work(with_short=False)) for _ in range(10))
    assert any(share > 0.8 for share in shares)  # of a machine that others use too


def test_urgent_work_takes_all_of_the_time_too() -> None:
    """A group that another forwarder took over would be restored five times as slowly."""
    runs = (asyncio.run(share_of_long_work(with_short=True, is_urgent=True)) for _ in range(10))
    assert any(share > 0.8 for share in runs)


def test_short_work_of_a_client_with_long_work_leaves_no_time_free() -> None:
    """Or else groups with much to do would wait for each other, and for themselves."""

    async def share() -> float:
        turns, long = GroupTurns(), Long()
        await turns.run(1, Long().steps())
        await turns.run(1, iter([None]))
        began_s = time.monotonic()
        await turns.run(2, long.steps())
        return long.busy_s / (time.monotonic() - began_s)

    assert any(asyncio.run(share()) > 0.8 for _ in range(10))


def test_short_work_of_the_same_client_leaves_no_time_free() -> None:
    """A client's groups that are behind would never catch up while another one is not."""

    async def share() -> float:
        turns, long = GroupTurns(), Long()
        await turns.run(1, iter([None]))
        began_s = time.monotonic()
        await turns.run(1, long.steps())
        return long.busy_s / (time.monotonic() - began_s)

    assert any(asyncio.run(share()) > 0.8 for _ in range(10))


def test_short_work_does_not_wait_for_long_work() -> None:
    """It waited for a slice of each group that had long work."""

    async def order() -> list[str]:
        turns, ended = GroupTurns(), list[str]()

        async def one(group: int, name: str, steps: Iterator[None]) -> None:
            await turns.run(group, steps)
            ended.append(name)

        await asyncio.gather(
            *(one(number, f"long-{number}", Long().steps()) for number in range(3)),
            one(3, "short", iter([None])),
        )
        return ended

    assert asyncio.run(order())[0] == "short"


def test_all_long_works_proceed_together() -> None:
    async def order() -> list[int]:
        turns, taken = GroupTurns(), list[int]()

        def steps(number: int) -> Iterator[None]:
            for _ in Long().steps():
                taken.append(number)
                yield

        await asyncio.gather(turns.run(1, steps(1)), turns.run(2, steps(2)))
        return taken

    taken = asyncio.run(order())
    first_half = taken[: len(taken) // 2]
    assert 0.3 < first_half.count(1) / len(first_half) < 0.7
