"""`current` returns up-to-date interests of a forwarder, however late notifications arrive."""

import asyncio

import pytest

from delivery.forward.leases import Lease
from delivery.forward.stream_matchers import StreamMatchers
from delivery.listening.registration_matcher import RegistrationMatcher
from delivery.listening.version_loader import RegistrationSet, VersionLoader
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.stored import StoredEvent
from eventhub.postgresql.connections import reading
from tests.integration.forward_world import World, interests_alone, world_database

world = pytest.fixture(scope="module")(world_database)
interests = pytest.fixture(interests_alone)
EVENT = Event("d", "a", {})
FILTERS = 100
COMPILED_S = 1.6  # at least


async def test_a_change_applies_without_a_notification(
    world: World, interests: StreamMatchers
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    assert (await interests.current(lease)).match(EVENT, 1).endpoints == {}
    for _ in range(10):  # no NOTIFY is sent, and heads are polled four times a second
        [registration] = world.register(stream_id, [endpoint], "a")
        assert (await interests.current(lease)).match(EVENT, 1).endpoints == {
            endpoint: [registration]
        }
        world.change(registration, stream_id, None)
        assert (await interests.current(lease)).match(EVENT, 1).endpoints == {}


async def test_an_ended_version_stays_until_the_stream_has_passed_its_end(
    world: World, interests: StreamMatchers
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    [registration] = world.register(stream_id, [endpoint], "a")
    world.emit(stream_id, "a", "a")
    world.change(registration, stream_id, None)
    world.emit(stream_id, "a")
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    interest = await interests.current(lease)
    matches = [interest.match(EVENT, sequence).endpoints for sequence in (1, 2, 3)]
    assert matches == [{endpoint: [registration]}, {endpoint: [registration]}, {}]
    interest.advance(1)
    assert len(interest) == 1
    interest.advance(2)
    assert len(interest) == 0


async def test_a_gap_in_system_reloads_the_tables(world: World, interests: StreamMatchers) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    before = await interests.current(lease)
    [registration] = world.register(stream_id, [endpoint], "a")
    interests._on_change(None)
    after = await interests.current(lease)
    assert after is not before
    assert after.match(EVENT, 1).endpoints == {endpoint: [registration]}
    assert await interests.current(lease) is after


async def test_changes_during_a_load_are_not_lost(world: World, interests: StreamMatchers) -> None:
    stream_id = world.stream()
    endpoints = world.endpoints(3_000)
    world.register(stream_id, endpoints, "a")
    lease = Lease(stream_id, 1)
    opening = asyncio.create_task(interests.open(lease, 0))
    [endpoint] = world.endpoints()
    registrations: list[int] = []
    while not opening.done():
        registrations += await asyncio.to_thread(world.register, stream_id, [endpoint], "a")
    matches = (await interests.current(lease)).match(EVENT, 1).endpoints
    assert registrations
    assert matches[endpoint] == registrations
    assert len(matches) == 3_001


def long_filters(world: World, on: int, endpoints: list[int], name: str) -> list[int]:
    """Create registrations of a group whose filters take at least COMPILED_S."""
    registrations = world.register(on, endpoints, "a", world.group())
    for registration in registrations:
        tests = " ".join(f"(> {name}_{at:03} {registration})" for at in range(320))
        world.sql(
            "UPDATE registration_versions SET language = 'predicate', filter = %s"
            " WHERE registration_id = %s",
            *(f'"(or (= @type \\"a\\") (and {tests}))"', registration),
        )
    return registrations


async def test_slow_filters_delay_no_other_stream(
    world: World, interests: StreamMatchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """400 filters of 10 KB took longer than a read from the database may: every stream of the
    process stopped for ever, and a listener that named so many never started.
    """
    monkeypatch.setitem(reading.__wrapped__.__kwdefaults__, "seconds", COMPILED_S / 4)
    slow, quick = Lease(world.stream(), 1), Lease(world.stream(), 1)
    for lease in (slow, quick):
        await interests.open(lease, 0)
    endpoints = world.endpoints(FILTERS + 1)
    registrations = long_filters(world, slow.stream_id, endpoints[:-1], "number")
    world.register(quick.stream_id, endpoints[-1:], "a")
    applying = asyncio.create_task(interests.current(slow))
    matches = (await interests.current(quick)).match(EVENT, 1).endpoints
    assert list(matches) == endpoints[-1:]
    assert interests._entries[slow].changes, "who has nothing to do with it does not wait"
    assert sorted((await applying).match(EVENT, 1).endpoints) == endpoints[:-1]

    registrations = long_filters(world, slow.stream_id, endpoints[:-1], "amount")
    loader, feed = VersionLoader(interests._log), interests._feed
    named = RegistrationSet(tuple(registrations))
    async with RegistrationMatcher.open(loader, feed, named, slow.stream_id) as listened:
        await listened.catch_up(0, 1)
        event = StoredEvent("", 1, DEFAULT_MASK, 0, encode(EVENT))
        assert listened.matching(event).ids == registrations


async def test_a_group_is_known_with_the_first_of_its_registrations(
    world: World, interests: StreamMatchers
) -> None:
    """Its suspensions apply to registrations that join it while suspended, and not to earlier
    events.
    """
    here, there, group = world.stream(), world.stream(), world.group()
    [endpoint] = world.endpoints()
    leases = Lease(here, 1), Lease(there, 1)
    for lease in leases:
        await interests.open(lease, 0)

    async def matches(lease: Lease, sequence: int) -> list[int]:
        return (await interests.current(lease)).match(EVENT, sequence).endpoints.get(endpoint, [])

    world.suspend(group, [])
    [one] = world.register(here, [endpoint], group=group)
    assert await matches(leases[0], 1) == []
    world.emit(here, "a")
    world.suspend(group, [here], resume=True)
    [other] = world.register(there, [endpoint], group=group)
    assert [await matches(leases[0], sequence) for sequence in (1, 2)] == [[], [one]]
    assert await matches(leases[1], 1) == [other]
