"""Who hears of which change, and who waits for the news of a hub whose database is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from delivery.listening.interest import Interest
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.log import Log
from registrations.feed import CatalogChange, Feed
from tests.acceptance.wire import until

OF_THE_GROUP, OF_THE_CLIENT = CatalogChange(None, 4, group=1), CatalogChange(None, 5)
CHANGES = [
    CatalogChange(1, 1),
    CatalogChange(2, 2),
    CatalogChange(3, 3),
    OF_THE_GROUP,
    OF_THE_CLIENT,
    None,
]


class Away:
    """A log whose database is away."""

    @asynccontextmanager
    async def follow(self, stream_id: int, start: str) -> AsyncIterator[None]:
        raise DatabaseUnavailable
        yield


def feed() -> Feed:
    return Feed(cast(Log, Away()))


def test_who_listens_for_some_hears_of_no_others() -> None:
    told = feed()
    everything: list[CatalogChange | None] = []
    some: list[CatalogChange | None] = []
    told.listeners.add(everything.append)
    with told.subscription([2, 3], some.append), told.subscription([3], lambda change: None):
        for change in CHANGES:
            told._tell(change)
    for change in CHANGES:
        told._tell(change)
    assert everything == CHANGES * 2
    assert some == [CatalogChange(2, 2), CatalogChange(3, 3), OF_THE_GROUP, OF_THE_CLIENT, None]
    assert not told._by_registration


async def test_a_listen_is_told_of_its_own_registrations_alone() -> None:
    """Every change was told to every listen: 9 s of 10,000 listens for one read of `system`."""
    told = feed()
    async with Interest.open(cast(Log, Away()), told, [1, 2], 1) as interest:
        assert not told.listeners
        for change, stale in (
            (CatalogChange(7, 1), False),
            (CatalogChange(2, 2), True),
            (None, True),
        ):
            interest._stale = False
            told._tell(change)
            assert interest._stale is stale, change


async def test_who_gave_up_is_forgotten_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "READ_TIMEOUT_S_MAX", 0.01)
    monkeypatch.setattr(limits, "HEAD_POLL_INTERVAL_S", 0.01)
    told = feed()
    following = asyncio.create_task(told.run())

    async def ask() -> None:
        for _ in range(10):
            with pytest.raises(DatabaseUnavailable):
                await told.confirm()

    await asyncio.gather(*(ask() for _ in range(20)))
    await until(lambda: not told._waiting)
    following.cancel()
