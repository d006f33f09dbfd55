"""The time slices of pattern groups: a client that used more time than others pauses."""

import asyncio
import time
from collections.abc import Iterator

from delivery.patterns.turns import GroupTurns
from eventhub.base import limits

STEP_S = limits.PATTERN_SLICE_S / 4
STEPS = 400  # 100 slices
FREE_STEPS = 80  # that take no longer than a client may without a pause


class Long:
    """Work that takes processor time. `busy_s`: how long it ran."""

    def __init__(self, count: int = STEPS) -> None:
        self.busy_s = 0.0
        self._count = count

    def steps(self) -> Iterator[None]:
        for _ in range(self._count):
            began_s = time.monotonic()
            while time.monotonic() < began_s + STEP_S:
                pass
            self.busy_s += time.monotonic() - began_s
            yield


async def share_of(turns: GroupTurns, *clients: int, is_urgent: bool = False) -> float:
    """Return the share of the time in which long work of the clients runs."""
    began_s, works = time.monotonic(), [Long() for _ in clients]
    await asyncio.gather(
        *(
            turns.run(client, long.steps(), is_urgent=is_urgent)
            for client, long in zip(clients, works, strict=True)
        )
    )
    return sum(long.busy_s for long in works) / (time.monotonic() - began_s)


async def keep_active(turns: GroupTurns, client: int, steps: int) -> None:
    """Run a little work of a client constantly, until cancelled."""
    while True:
        await turns.run(client, Long(steps).steps())
        await asyncio.sleep(0.05)


async def share_beside(steps: int, *clients: int, is_urgent: bool = False) -> float:
    """Return the share of long work of the clients while client 1 works little."""
    turns = GroupTurns()
    light = asyncio.create_task(keep_active(turns, 1, steps))
    await asyncio.sleep(0)
    try:
        return await share_of(turns, *clients, is_urgent=is_urgent)
    finally:
        light.cancel()


FIFTH = 1 / (1 + limits.PATTERN_SLICE_PAUSE)
FREE = limits.PATTERN_USED_FREE_S / (STEPS * STEP_S)  # of long work that takes no pause


def test_long_work_takes_a_fifth_of_the_time_while_others_have_short_work() -> None:
    assert asyncio.run(share_beside(1, 2)) < 1.3 * FIFTH / (1 - FREE)


def test_a_batch_of_others_that_takes_more_than_a_slice_does_not_end_the_pauses() -> None:
    """It counted as long work, and nobody paused any more: others came later and later."""
    assert asyncio.run(share_beside(6, 2)) < 1.6 * FIFTH / (1 - FREE)


def test_clients_with_long_work_share_the_fifth() -> None:
    assert asyncio.run(share_beside(1, 2, 3, 4)) < 1.6 * FIFTH / (1 - FREE)


def test_groups_of_a_client_share_its_time() -> None:
    assert asyncio.run(share_beside(1, 2, 2, 2)) < 1.3 * FIFTH / (1 - FREE)


def test_a_client_that_pauses_begins_no_work_either() -> None:
    """The first slice of each group was free: a thousand groups never paused."""

    async def share() -> float:
        turns, began_s = GroupTurns(), time.monotonic()
        await turns.run(1, iter([None]))
        works = [Long(3) for _ in range(100)]
        await asyncio.gather(*(turns.run(2, long.steps()) for long in works))
        return sum(long.busy_s for long in works) / (time.monotonic() - began_s)

    assert asyncio.run(share()) < 1.5 * FIFTH / (1 - FREE)


def test_time_that_outputs_take_elsewhere_is_paused_for_too() -> None:
    async def waited_s() -> float:
        turns = GroupTurns()
        await turns.run(1, iter([None]))
        turns.charge(2, 0.05)
        began_s = time.monotonic()
        await turns.run(2, iter([None]))
        return time.monotonic() - began_s

    assert asyncio.run(waited_s()) >= 0.05 * limits.PATTERN_SLICE_PAUSE - 0.002


def test_a_client_pauses_also_after_one_of_its_groups_has_ended() -> None:
    """What the client had used was forgotten: groups that came and went ended all its pauses."""

    async def waited_s() -> float:
        turns = GroupTurns()
        await turns.run(1, iter([None]))
        turns.charge(2, 0.05)
        turns.forget_idle()
        began_s = time.monotonic()
        await turns.run(2, iter([None]))
        return time.monotonic() - began_s

    assert asyncio.run(waited_s()) >= 0.05 * limits.PATTERN_SLICE_PAUSE - 0.002


def test_a_client_alone_does_not_pause_for_its_outputs() -> None:
    async def waited_s() -> float:
        turns = GroupTurns()
        turns.charge(2, 0.5)
        began_s = time.monotonic()
        await turns.run(2, iter([None]))
        return time.monotonic() - began_s

    assert asyncio.run(waited_s()) < 0.5


def test_long_work_alone_takes_all_of_the_time() -> None:
    shares = (asyncio.run(share_of(GroupTurns(), 2)) for _ in range(10))
    assert any(share > 0.8 for share in shares)  # of a machine that others use too


def test_urgent_work_takes_all_of_the_time_too() -> None:
    """A group that another forwarder took over would be restored five times as slowly."""
    runs = (asyncio.run(share_beside(1, 2, is_urgent=True)) for _ in range(10))
    assert any(share > 0.8 for share in runs)


def test_clients_that_all_have_long_work_take_all_of_the_time() -> None:
    """Or else groups with much to do would wait for each other."""
    assert any(asyncio.run(share_of(GroupTurns(), 1, 2)) > 0.8 for _ in range(10))


def test_short_work_of_the_same_client_leaves_no_time_free() -> None:
    """A client's groups that are behind would never catch up while another one is not."""
    assert any(asyncio.run(share_beside(1, 1)) > 0.8 for _ in range(10))


def test_short_work_does_not_wait_for_long_work() -> None:
    """It waited for a slice of each group that had long work."""

    async def order() -> list[str]:
        turns, ended = GroupTurns(), list[str]()

        async def one(group: int, name: str, steps: Iterator[None]) -> None:
            await turns.run(group, steps)
            ended.append(name)

        await asyncio.gather(
            *(one(number, f"long-{number}", Long(FREE_STEPS).steps()) for number in range(3)),
            one(3, "short", iter([None])),
        )
        return ended

    assert asyncio.run(order())[0] == "short"


def test_all_long_works_proceed_together() -> None:
    async def order() -> list[int]:
        turns, taken = GroupTurns(), list[int]()

        def steps(number: int) -> Iterator[None]:
            for _ in Long(FREE_STEPS).steps():
                taken.append(number)
                yield

        await asyncio.gather(turns.run(1, steps(1)), turns.run(2, steps(2)))
        return taken

    def share() -> float:
        taken = asyncio.run(order())
        first_half = taken[: len(taken) // 2]
        return first_half.count(1) / len(first_half)

    assert any(0.3 < share() < 0.7 for _ in range(10))  # of a machine that others use too
