"""What a forwarder matches against is up to date when it says so, however late its news come."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from delivery.forward.interests import Interests
from delivery.forward.leases import Lease
from delivery.forward.zone import Zones
from eventhub.access.groups import Groups
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from eventhub.types.book import Book
from registrations.feed import Feed
from tests.integration.forward_world import World, world_database

world = pytest.fixture(scope="module")(world_database)
EVENT = Event("d", "a", {})


@pytest.fixture
async def interests(world: World) -> AsyncIterator[Interests]:
    """Nothing applies changes by itself here: what is in must have come through `current`."""
    async with Log.open(database_url=world.url) as log:
        feed = Feed(log)
        task = asyncio.create_task(feed.run())
        await feed.confirm()
        yield Interests(log, feed, Zones(Book(log), Groups(log)), lambda: None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_change_counts_although_nobody_has_told_of_it(
    world: World, interests: Interests
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    assert (await interests.current(lease)).owed(EVENT, 1) == {}
    for _ in range(10):  # no NOTIFY is sent, and the look at the heads comes four times a second
        [ticket] = world.register(stream_id, [endpoint], "a")
        assert (await interests.current(lease)).owed(EVENT, 1) == {endpoint: [ticket]}
        world.change(ticket, stream_id, None)
        assert (await interests.current(lease)).owed(EVENT, 1) == {}


async def test_an_ended_version_stays_until_the_stream_has_passed_its_end(
    world: World, interests: Interests
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    [ticket] = world.register(stream_id, [endpoint], "a")
    world.emit(stream_id, "a", "a")
    world.change(ticket, stream_id, None)
    world.emit(stream_id, "a")
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    interest = await interests.current(lease)
    owed = [interest.owed(EVENT, sequence) for sequence in (1, 2, 3)]
    assert owed == [{endpoint: [ticket]}, {endpoint: [ticket]}, {}]
    interest.advance(1)
    assert len(interest) == 1
    interest.advance(2)
    assert len(interest) == 0


async def test_a_gap_in_system_makes_it_read_the_tables_again(
    world: World, interests: Interests
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    before = await interests.current(lease)
    [ticket] = world.register(stream_id, [endpoint], "a")
    interests._told(None)
    after = await interests.current(lease)
    assert after is not before
    assert after.owed(EVENT, 1) == {endpoint: [ticket]}
    assert await interests.current(lease) is after


async def test_changes_while_the_tables_are_read_are_not_lost(
    world: World, interests: Interests
) -> None:
    stream_id = world.stream()
    endpoints = world.endpoints(3_000)
    world.register(stream_id, endpoints, "a")
    lease = Lease(stream_id, 1)
    opening = asyncio.create_task(interests.open(lease, 0))
    [endpoint] = world.endpoints()
    tickets: list[int] = []
    while not opening.done():
        tickets += await asyncio.to_thread(world.register, stream_id, [endpoint], "a")
    owed = (await interests.current(lease)).owed(EVENT, 1)
    assert tickets
    assert owed[endpoint] == tickets
    assert len(owed) == 3_001


async def test_a_group_is_known_with_the_first_of_its_registrations(
    world: World, interests: Interests
) -> None:
    """It sleeps for those that join it asleep, and has never slept where none was meanwhile."""
    here, there, group = world.stream(), world.stream(), world.group()
    [endpoint] = world.endpoints()
    leases = Lease(here, 1), Lease(there, 1)
    for lease in leases:
        await interests.open(lease, 0)

    async def owed(lease: Lease, sequence: int) -> list[int]:
        return (await interests.current(lease)).owed(EVENT, sequence).get(endpoint, [])

    world.suspend(group, [])
    [one] = world.register(here, [endpoint], group=group)
    assert await owed(leases[0], 1) == []
    world.emit(here, "a")
    world.suspend(group, [here], resume=True)
    [other] = world.register(there, [endpoint], group=group)
    assert [await owed(leases[0], sequence) for sequence in (1, 2)] == [[], [one]]
    assert await owed(leases[1], 1) == [other]
