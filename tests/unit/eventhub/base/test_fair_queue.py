"""Fair queueing between zones and clients, and admission by it: counted, never timed."""

import asyncio
import tracemalloc

import pytest

from eventhub.base.errors import DatabaseUnavailable, Overloaded, TooManyRequests
from eventhub.base.fair_queue import Admission, FairQueue, QueueOwner, Slots, WaitLimits

HOG, VICTIM, NEIGHBOUR = QueueOwner(1, 1), QueueOwner(2, 1), QueueOwner(1, 2)
ONE = Slots(1, 1)


async def settled() -> None:
    """Let every task run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def emptied(queue: FairQueue[str]) -> str:
    return "".join(queue.pop() for _ in range(len(queue)))


def queue_of(*items: tuple[QueueOwner, str, int]) -> FairQueue[str]:
    queue: FairQueue[str] = FairQueue()
    for item in items:
        queue.put(*item)
    return queue


def test_a_client_with_few_items_waits_for_one_item_of_another() -> None:
    queue = queue_of(*[(HOG, "h", 1)] * 500)
    assert [queue.pop() for _ in range(10)] == ["h"] * 10
    queue.put(VICTIM, "v")
    assert [queue.pop(), queue.pop()].count("v") == 1


def test_parties_with_much_waiting_alternate() -> None:
    queue = queue_of(*[(HOG, "h", 1)] * 4, *[(VICTIM, "v", 1)] * 4)
    assert emptied(queue) == "hvhvhvhv"


def test_zones_share_before_clients_do() -> None:
    """A zone with two busy clients gets no more than one with a single one."""
    items = [*[(HOG, "h", 1)] * 4, *[(NEIGHBOUR, "n", 1)] * 4, *[(VICTIM, "v", 1)] * 4]
    assert emptied(queue_of(*items))[:8] == "hvnvhvnv"


def test_items_of_one_client_are_first_in_first_out() -> None:
    queue = queue_of(*((HOG, letter, 3) for letter in "abcd"))
    assert emptied(queue) == "abcd"


def test_expensive_items_wait_longer() -> None:
    items = [*[(HOG, "H", 3)] * 2, *[(VICTIM, "v", 1)] * 6]
    assert emptied(queue_of(*items)) == "HvvvHvvv"


def test_a_queue_that_was_empty_for_a_moment_still_waits_for_the_others() -> None:
    queue = queue_of(*[(VICTIM, "v", 1)] * 4, (HOG, "H", 3))
    assert [queue.pop(), queue.pop()] == ["v", "H"]
    queue.put(HOG, "H", 3)
    assert emptied(queue) == "vvHv"


def test_peek_returns_the_item_that_pop_takes() -> None:
    queue = queue_of((HOG, "a", 1), (VICTIM, "b", 1))
    assert (queue.peek(), queue.pop(), queue.peek()) == ("a", "a", "b")


def test_a_queue_that_is_never_empty_forgets_parties() -> None:
    """The queue grew by an entry for each address that guessed passwords at the same time."""
    queue = queue_of((HOG, "h", 1))
    tracemalloc.start()
    for number in range(20_000):
        queue.put(QueueOwner(1, 10 + number), "v")
        queue.put(HOG, "h")
        queue.pop()
        queue.pop()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(queue) == 1
    assert grown < 100_000


async def test_a_slot_goes_to_the_party_that_was_served_least() -> None:
    admission = Admission(Slots(2, 2))
    order: list[str] = []
    ends = asyncio.Event()

    async def one(owner: QueueOwner, name: str) -> None:
        async with admission.hold(owner):
            order.append(name)
            await ends.wait()

    tasks = [asyncio.create_task(one(HOG, "h")) for _ in range(8)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(one(VICTIM, "v")))
    await asyncio.sleep(0)
    assert order == ["h", "h"]
    ends.set()
    await asyncio.gather(*tasks)
    assert "v" in order[2:4]
    assert len(order) == 9


async def test_a_cancelled_waiter_takes_no_slot() -> None:
    admission = Admission(ONE)
    await admission.enter(HOG)
    gone, next_one = (asyncio.create_task(admission.enter(HOG)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    admission.leave(HOG)
    await next_one
    late = asyncio.create_task(admission.enter(HOG))
    await asyncio.sleep(0)
    admission.leave(HOG)
    late.cancel()  # at the moment when it is admitted
    await asyncio.gather(late, return_exceptions=True)
    await asyncio.wait_for(admission.enter(VICTIM), 20)


async def test_a_client_with_too_much_waiting_is_refused_and_another_is_not() -> None:
    admission = Admission(ONE, WaitLimits(waiting_max=10, waiting_per_party_max=4, wait_s_max=60))
    await admission.enter(HOG)
    waiting = [asyncio.create_task(admission.enter(HOG)) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests) as refused:
        await admission.enter(HOG)
    assert refused.value.retry_after_s == 1
    waiting.append(asyncio.create_task(admission.enter(VICTIM)))
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(admission.enter(NEIGHBOUR, 4))]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await admission.enter(VICTIM, 3)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_party_that_waited_too_long_is_refused_and_forgotten() -> None:
    two = Slots(2, 1)
    admission = Admission(two, WaitLimits(waiting_max=10, waiting_per_party_max=4, wait_s_max=0.01))

    async def keep_working() -> None:
        while True:
            async with admission.hold(NEIGHBOUR):
                await asyncio.sleep(0)

    await admission.enter(HOG)
    neighbour = asyncio.create_task(keep_working())
    await settled()
    hogs = await asyncio.gather(*(admission.enter(HOG) for _ in range(4)), return_exceptions=True)
    assert {type(hog) for hog in hogs[:3]} == {TooManyRequests}
    neighbour.cancel()
    admission.leave(HOG)
    await asyncio.wait_for(admission.enter(VICTIM), 20)


async def test_without_progress_no_party_is_blamed() -> None:
    """A client whose requests waited for an unavailable database got 429 and should send fewer."""
    admission = Admission(ONE, WaitLimits(waiting_max=10, waiting_per_party_max=4, wait_s_max=0.01))
    all_refused = asyncio.Event()

    async def fail() -> None:
        async with admission.hold(HOG):
            await all_refused.wait()
            raise DatabaseUnavailable

    failing = asyncio.create_task(fail())
    await settled()
    waiting = [admission.enter(owner) for owner in (VICTIM, HOG, HOG, HOG)]
    refused = await asyncio.gather(*waiting, return_exceptions=True)
    all_refused.set()
    assert [type(one) for one in refused] == [Overloaded] * 4
    with pytest.raises(DatabaseUnavailable):
        await failing


async def test_a_client_holds_all_slots_until_another_one_comes() -> None:
    admission = Admission(Slots(4, 2))
    hogs = [asyncio.create_task(admission.enter(HOG)) for _ in range(9)]
    await settled()
    assert sum(hog.done() for hog in hogs) == 4
    victim = asyncio.create_task(admission.enter(VICTIM))
    admitted = []
    for _ in range(4):
        await settled()
        admission.leave(HOG)
        await settled()
        admitted.append((victim.done(), sum(hog.done() for hog in hogs)))
    assert admitted == [(True, 4), (True, 4), (True, 5), (True, 6)]
    for hog in hogs:
        hog.cancel()
    await asyncio.gather(*hogs, return_exceptions=True)


async def test_parties_that_come_and_go_are_forgotten() -> None:
    admission = Admission(ONE, WaitLimits(2, 2, 60))
    for client_id in range(100):
        async with admission.hold(QueueOwner(1, client_id)):
            with pytest.raises((Overloaded, TooManyRequests)):
                await admission.enter(QueueOwner(2, client_id), 3)
    assert not admission.owners
