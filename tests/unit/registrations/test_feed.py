"""Listeners of the feed are notified of the changes that concern them; waiting callers time out
while the database is unavailable.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from delivery.listening.registration_matcher import RegistrationMatcher
from delivery.listening.version_loader import RegistrationSet, VersionLoader
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.log import Log
from registrations.feed import CatalogChange, Confirmation, Feed
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


class UnavailableLog:
    """A log whose database is unavailable."""

    @asynccontextmanager
    async def follow(self, stream_id: int, start: str) -> AsyncIterator[None]:
        raise DatabaseUnavailable
        yield


def feed() -> Feed:
    return Feed(cast(Log, UnavailableLog()))


def test_a_subscriber_of_some_registrations_is_not_notified_of_others() -> None:
    changes = feed()
    everything: list[CatalogChange | None] = []
    some: list[CatalogChange | None] = []
    changes.listeners.add(everything.append)
    with changes.subscription([2, 3], some.append), changes.subscription([3], lambda change: None):
        for change in CHANGES:
            changes._notify(change)
    for change in CHANGES:
        changes._notify(change)
    assert everything == CHANGES * 2
    assert some == [CatalogChange(2, 2), CatalogChange(3, 3), OF_THE_GROUP, OF_THE_CLIENT, None]
    assert not changes._by_registration


async def test_a_listener_is_notified_of_its_own_registrations_only() -> None:
    """Every listener was notified of every change: 10,000 listeners took 9 s for one read of
    `system`.
    """
    changes = feed()
    named = RegistrationSet((1, 2))
    async with RegistrationMatcher.open(cast(VersionLoader, None), changes, named, 1) as matcher:
        assert not changes.listeners
        for change, stale in (
            (CatalogChange(7, 1), False),
            (CatalogChange(2, 2), True),
            (None, True),
        ):
            matcher._stale = False
            changes._notify(change)
            assert matcher._stale is stale, change


async def test_callers_that_timed_out_are_dropped_while_the_database_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "READ_TIMEOUT_S_MAX", 0.01)
    monkeypatch.setattr(limits, "HEAD_POLL_INTERVAL_S", 0.01)
    changes = feed()
    following = asyncio.create_task(changes.run())

    async def ask() -> None:
        for _ in range(10):
            with pytest.raises(DatabaseUnavailable):
                await changes.confirm()

    await asyncio.gather(*(ask() for _ in range(20)))
    await until(lambda: not changes._waiting)
    following.cancel()


async def test_stored_events_are_confirmed_together_and_later_ones_again() -> None:
    changes = feed()
    confirmation = Confirmation(changes)
    confirmation.begin(through=5)
    [asked] = changes._waiting
    early = asyncio.create_task(confirmation.wait(4))
    await asyncio.sleep(0)
    assert not early.done()
    asked.set_result(None)
    await early
    await confirmation.wait(5)
    assert changes._waiting == [asked]
    later = asyncio.create_task(confirmation.wait(6))
    await asyncio.sleep(0)
    assert len(changes._waiting) == 2
    assert not later.done()
    changes._waiting[-1].set_result(None)
    await later
    confirmation.begin(through=2)  # of another history
    once_more = asyncio.create_task(confirmation.wait(2))
    await asyncio.sleep(0)
    assert not once_more.done()
    once_more.cancel()
    await asyncio.gather(once_more, return_exceptions=True)
    again = asyncio.create_task(confirmation.wait(2))  # the call that was cancelled is none
    await asyncio.sleep(0)
    assert len(changes._waiting) == 4
    changes._waiting[-1].set_result(None)
    await again
