"""The closure of a stream with many registrations: extended with new ones, rebuilt in the
background, and everything while it is unknown; never less than the interest.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from registrations.feed import Feed
from registrations.filters.closure.union import EVERYTHING
from registrations.interest import live
from registrations.interest.live import Closures, StreamInterest
from registrations.interest.stored import InterestScope
from tests.live import LiveZone


@asynccontextmanager
async def opened(zone: LiveZone) -> AsyncIterator[Callable[..., Any]]:
    """Yield a reader of the closure of the stream `log`, for all clients or an audience."""
    zone.create_stream("log")
    [(id,)] = zone.hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = 'log'",
        zone.name,
    )
    async with Log.open(database_url=zone.hub.database_url) as log:
        feed = Feed(log)
        closures = Closures(log, feed)
        following = asyncio.create_task(feed.run())
        try:
            yield lambda *audience: closures.current(InterestScope(id, audience or None))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Reduce the limits that make a closure one of many registrations."""
    values = {"FILTERS_MAX": 3, "CHUNK": 4, "ADDED_MAX": 4, "REBUILD_S": 3_600.0}
    for name, value in values.items():
        monkeypatch.setattr(limits, f"CLOSURE_{name}", value)
    return monkeypatch


def device(number: int, **more: Any) -> dict[str, Any]:
    return {"streams": ["log"], "attributes": {"device": f"d{number}"}, **more}


def wants(interest: StreamInterest, number: int) -> bool:
    return interest.closure.matches(Event("a", "b", {"device": f"d{number}"}))


def end(zone: LiveZone, id: int) -> None:
    assert zone.hub.call("DELETE", f"/v1/registrations/{id}", key=zone.admin).status == 204


async def without(current: Callable[[], Any], number: int) -> StreamInterest:
    """Wait for the first interest that does not match the device."""
    async with asyncio.timeout(60):
        while True:
            found: StreamInterest = await current()
            if not wants(found, number):
                return found
            await asyncio.sleep(0.01)


async def test_new_registrations_are_in_it_at_once_and_ended_ones_leave_later(
    zone: LiveZone, small: pytest.MonkeyPatch
) -> None:
    hub = zone.hub
    async with opened(zone) as current:
        made = zone.register(*map(device, range(9)))
        first = await current()
        assert [wants(first, n) for n in (0, 8, 9)] == [True, True, False]
        zone.register(device(9))
        end(zone, made[0]["id"])
        second = await current()
        assert [wants(second, n) for n in (0, 8, 9, 10)] == [True, True, True, False]
        assert (await current()).revision == second.revision, "nothing changed"

        group = hub.call(
            "POST", "/v1/registration-groups", {"name": "g", "suspended": True}, key=zone.admin
        ).json
        zone.register(*(device(n, group="g") for n in (11, 12)))
        assert not wants(await current(), 11)
        path = f"/v1/registration-groups/{group['id']}"
        assert hub.call("PATCH", path, {"suspended": False}, key=zone.admin).status == 200
        third = await current()
        assert [wants(third, n) for n in (11, 12, 13)] == [True, True, False]

        zone.register(*map(device, range(20, 29)))  # more than are added
        much = await current()
        assert much.closure == EVERYTHING, "it was made a moment ago"
        assert wants(much, 28)


async def test_it_is_rebuilt_in_the_background(zone: LiveZone, small: pytest.MonkeyPatch) -> None:
    small.setattr(limits, "CLOSURE_REBUILD_S", 0.0)
    small.setattr(limits, "CLOSURE_REBUILD_SHARE", 0.0)
    async with opened(zone) as current:
        made = zone.register(*map(device, range(9)))
        assert wants(await current(), 0)
        end(zone, made[0]["id"])

        await without(current, 0)
        small.setattr(limits, "CLOSURE_WAIT_S", 0.0)
        zone.register(*map(device, range(20, 29)))
        assert (await current()).closure == EVERYTHING, "nobody waits for it"
        assert wants(await without(current, 29), 28)


async def test_acknowledged_registrations_are_always_in_it(
    zone: LiveZone, small: pytest.MonkeyPatch
) -> None:
    small.setattr(limits, "CLOSURE_REBUILD_S", 0.0)
    random = Random(4)
    there: dict[int, int] = {}  # registrations, by device
    exact = 0

    async def ask(current: Callable[[], Any]) -> None:
        nonlocal exact
        known = set(there)
        found = await current()
        exact += not found.closure.widened
        assert all(wants(found, n) for n in known & set(there)), known

    async with opened(zone) as current:
        for turn in range(25):
            asking = [asyncio.create_task(ask(current)) for _ in range(2)]
            if there and random.random() < 0.4:
                gone = random.choice(list(there))
                await asyncio.to_thread(end, zone, there.pop(gone))
            else:
                new = [turn * 10 + n for n in range(random.randrange(1, 7))]
                made = await asyncio.to_thread(zone.register, *map(device, new))
                there.update(zip(new, (one["id"] for one in made), strict=True))
            await ask(current)
            await asyncio.gather(*asking)
    assert exact > 5


async def test_after_an_expensive_one_for_an_audience_others_match_everything(
    zone: LiveZone, small: pytest.MonkeyPatch
) -> None:
    async with opened(zone) as current:
        zone.register(device(1))
        first = await current("a")
        assert (await current("b")).closure == first.closure, "it was not expensive"
        small.setattr(limits, "CLOSURE_EXPENSIVE_S", 0.0)
        small.setattr(limits, "CLOSURE_REBUILD_SHARE", 1e6)
        await current("c")
        assert (await current("d")).closure == EVERYTHING
        assert (await current("a")).closure == first.closure, "it is known"
        assert wants(await current(), 1)
        assert not wants(await current(), 2)


async def test_the_test_detects_a_missed_change(zone: LiveZone, small: pytest.MonkeyPatch) -> None:
    small.setattr(live._CachedClosure, "touch", lambda self, barriers: None)
    with pytest.raises(AssertionError):
        await test_acknowledged_registrations_are_always_in_it(zone, small)
