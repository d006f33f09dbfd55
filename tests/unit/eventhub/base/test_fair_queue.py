"""Fair queueing between zones and clients, and admission by it: counted, never timed."""

import asyncio
import tracemalloc

import pytest

from eventhub.base.errors import DatabaseUnavailable, Overloaded, TooManyRequests
from eventhub.base.fair_queue import Admission, Bounds, FairQueue, Party, Places

HOG, VICTIM, NEIGHBOUR = Party(1, 1), Party(2, 1), Party(1, 2)
ONE = Places(1, 1)


async def settled() -> None:
    """What can go on has gone on."""
    for _ in range(5):
        await asyncio.sleep(0)


def emptied(queue: FairQueue[str]) -> str:
    return "".join(queue.pop() for _ in range(len(queue)))


def queue_of(*items: tuple[Party, str, int]) -> FairQueue[str]:
    queue: FairQueue[str] = FairQueue()
    for item in items:
        queue.put(*item)
    return queue


def test_a_client_that_asks_for_little_waits_for_one_item_of_another() -> None:
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


def test_of_one_client_what_came_first_is_first() -> None:
    queue = queue_of(*((HOG, letter, 3) for letter in "abcd"))
    assert emptied(queue) == "abcd"


def test_what_costs_more_waits_longer() -> None:
    items = [*[(HOG, "H", 3)] * 2, *[(VICTIM, "v", 1)] * 6]
    assert emptied(queue_of(*items)) == "HvvvHvvv"


def test_a_lane_that_was_empty_for_a_moment_still_owes_what_it_was_served() -> None:
    queue = queue_of(*[(VICTIM, "v", 1)] * 4, (HOG, "H", 3))
    assert [queue.pop(), queue.pop()] == ["v", "H"]
    queue.put(HOG, "H", 3)
    assert emptied(queue) == "vvHv"


def test_the_next_item_is_shown_before_it_is_taken() -> None:
    queue = queue_of((HOG, "a", 1), (VICTIM, "b", 1))
    assert (queue.peek(), queue.pop(), queue.peek()) == ("a", "a", "b")


def test_a_queue_that_is_never_empty_does_not_remember_all_that_came_by() -> None:
    """It grew by an entry for each address that guessed passwords while others did, too."""
    queue = queue_of((HOG, "h", 1))
    tracemalloc.start()
    for number in range(20_000):
        queue.put(Party(1, 10 + number), "v")
        queue.put(HOG, "h")
        queue.pop()
        queue.pop()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(queue) == 1
    assert grown < 100_000


async def test_a_place_is_given_to_who_was_served_least() -> None:
    admission = Admission(Places(2, 2))
    order: list[str] = []
    ends = asyncio.Event()

    async def one(party: Party, name: str) -> None:
        async with admission.place(party):
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


async def test_who_goes_while_waiting_takes_no_place_away() -> None:
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
    late.cancel()  # at the moment in which it is let in
    await asyncio.gather(late, return_exceptions=True)
    await asyncio.wait_for(admission.enter(VICTIM), 1)


async def test_a_client_with_too_much_waiting_is_refused_and_another_is_not() -> None:
    admission = Admission(ONE, Bounds(waiting_max=10, waiting_per_party_max=4, wait_s_max=60))
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


async def test_who_has_waited_too_long_is_refused_and_leaves_no_trace() -> None:
    two = Places(2, 1)
    admission = Admission(two, Bounds(waiting_max=10, waiting_per_party_max=4, wait_s_max=0.01))

    async def get_on() -> None:
        while True:
            async with admission.place(NEIGHBOUR):
                await asyncio.sleep(0)

    await admission.enter(HOG)
    neighbour = asyncio.create_task(get_on())
    await settled()
    hogs = await asyncio.gather(*(admission.enter(HOG) for _ in range(4)), return_exceptions=True)
    assert {type(hog) for hog in hogs[:3]} == {TooManyRequests}
    neighbour.cancel()
    admission.leave(HOG)
    await asyncio.wait_for(admission.enter(VICTIM), 1)


async def test_while_nobody_gets_on_it_is_nobodys_fault() -> None:
    """A client whose requests waited for a database that was away was told to send fewer."""
    admission = Admission(ONE, Bounds(waiting_max=10, waiting_per_party_max=4, wait_s_max=0.01))

    async def fail() -> None:
        async with admission.place(HOG):
            await asyncio.sleep(0.02)
            raise DatabaseUnavailable

    failing = asyncio.create_task(fail())
    await settled()
    waiting = [admission.enter(party) for party in (VICTIM, HOG, HOG, HOG)]
    refused = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in refused] == [Overloaded] * 4
    with pytest.raises(DatabaseUnavailable):
        await failing


async def test_a_client_holds_all_places_until_another_one_comes() -> None:
    admission = Admission(Places(4, 2))
    hogs = [asyncio.create_task(admission.enter(HOG)) for _ in range(9)]
    await settled()
    assert sum(hog.done() for hog in hogs) == 4
    victim = asyncio.create_task(admission.enter(VICTIM))
    let_in = []
    for _ in range(4):
        await settled()
        admission.leave(HOG)
        await settled()
        let_in.append((victim.done(), sum(hog.done() for hog in hogs)))
    assert let_in == [(True, 4), (True, 4), (True, 5), (True, 6)]
    for hog in hogs:
        hog.cancel()
    await asyncio.gather(*hogs, return_exceptions=True)


async def test_parties_that_come_and_go_are_forgotten() -> None:
    admission = Admission(ONE, Bounds(2, 2, 60))
    for client_id in range(100):
        async with admission.place(Party(1, client_id)):
            with pytest.raises((Overloaded, TooManyRequests)):
                await admission.enter(Party(2, client_id), 3)
    assert not admission.parties
