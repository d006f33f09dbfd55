"""An error that nobody foresaw ends no background task: the log goes on appending and following.

The story: one NOTIFY that was not the hub's ended the task group of the tail in every process, and
no listener got another event, while emits were answered and nothing was logged.
"""

import asyncio
from typing import Any

import psycopg
import pytest

from eventhub.base.errors import OutcomeUnknown
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.appender import Appender
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.drafts import Draft, NewRow
from eventhub.eventlog.log import Log
from eventhub.eventlog.tail import Tail
from eventhub.postgresql.connections import reading_pool
from tests.live import LiveHub, LiveZone


def draft_for(hub: LiveHub, zone: LiveZone) -> Draft:
    """Return an event for a new stream of the zone."""
    name = zone.create_stream("background")
    [(stream_id,)] = hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = %s",
        zone.name,
        name,
    )
    return Draft(int(stream_id), DEFAULT_MASK, encode(Event("chaos", "tick", {})))


async def test_a_notice_that_is_not_the_hubs_ends_no_listening(
    hub: LiveHub, zone: LiveZone
) -> None:
    draft = draft_for(hub, zone)
    async with (
        asyncio.timeout(60),
        Log.open(database_url=hub.database_url) as other,
        Log.open(database_url=hub.database_url) as log,
        log.follow(draft.stream_id, "oldest") as follower,
    ):
        events = aiter(follower)
        await other.append([draft])
        assert (await anext(events)).sequence == 1
        with psycopg.connect(hub.database_url, autocommit=True) as stranger:
            stranger.execute("SELECT pg_notify('eventhub_heads', 'not ours')")
        for sequence in (2, 3):
            await other.append([draft])
            assert (await anext(events)).sequence == sequence


class FailsOnce(Tail):
    """A tail that does not take the first rows."""

    failed = False

    def committed(self, rows: list[NewRow], *watchers: Any, durable: bool = False) -> None:
        if not self.failed:
            self.failed = True
            raise ValueError("unforeseen")


async def test_an_append_that_fails_unforeseen_is_answered_and_the_next_one_served(
    hub: LiveHub, zone: LiveZone
) -> None:
    url = hub.database_url
    draft = draft_for(hub, zone)
    continuity = Continuity("")
    pool = reading_pool(url, "read", 1)
    tail = FailsOnce(url=url, direct_url=url, pool=pool, shares=set(), continuity=continuity)
    appender = Appender(url, "sync", tail)
    running = asyncio.create_task(appender.run())
    try:
        async with asyncio.timeout(60):
            with pytest.raises(OutcomeUnknown):
                await appender.append([draft])
            [place] = await appender.append([draft])
        assert place.sequence == 2
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
