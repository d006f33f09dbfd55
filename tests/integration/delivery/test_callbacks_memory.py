"""The memory of a worker while large events are due, with real dispatchers and receivers."""

import re
import tracemalloc
from typing import Any

import pytest

from eventhub.base import limits
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    draining,
    receiver,
    until,
)

MIB = 1024 * 1024
EVENTS = 60
EVENT_BYTES = MIB // 4
SEQUENCE = re.compile(rb'"sequence":(\d+)')
COPY = (
    "UPDATE deliveries d SET payload = e.payload FROM events e WHERE e.segment_id = d.segment_id"
    " AND e.sequence = d.sequence"
)


@pytest.fixture(autouse=True)
def lowered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLBACK_EVENT_BYTES_CACHED_MAX", MIB)
    monkeypatch.setattr(limits, "CALLBACK_CLAIM_BYTES_MAX", MIB)
    monkeypatch.setattr(limits, "CALLBACK_BYTES_HELD_MAX", 2 * MIB)


@pytest.mark.parametrize(
    "fields",
    [{}, {"ordered": True}, {"batch_events_max": 100}, {"ordered": True, "batch_events_max": 100}],
)
@pytest.mark.parametrize("copied", [False, True])
async def test_large_events_are_read_as_they_are_posted(
    world: CallbacksWorld, fields: dict[str, Any], copied: bool
) -> None:
    """A worker read all events that it had claimed: of batches up to four thousand. Replays write
    deliveries with copies of their events, which were read with the claim.
    """

    def forgetful(posted: Posted) -> bytes:
        sizes.append(len(posted.body))
        sent.extend(int(found) for found in SEQUENCE.findall(posted.body))
        sink.posted.clear()
        return OK

    sizes: list[int] = []
    sent: list[int] = []
    async with receiver(forgetful) as sink:
        endpoint = world.endpoint(sink.url, batch_bytes_max=MIB, **fields)
        world.deliver(world.events(EVENTS, body=bytes(EVENT_BYTES)), endpoint)
        if copied:
            world.sql(COPY)
        tracemalloc.start()
        try:
            async with draining(world):
                await until(lambda: world.count("delivered") == EVENTS)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(sizes) > EVENTS * EVENT_BYTES
    assert peak < 14 * MIB
    assert len(sent) == EVENTS
    if fields.get("ordered"):
        assert sent == sorted(sent)
    assert world.sql("SELECT DISTINCT attempts, claim FROM deliveries") == [(1, None)]


@pytest.mark.parametrize("fields", [{}, {"batch_events_max": 100}])
async def test_endpoints_that_share_large_events_share_the_memory(
    world: CallbacksWorld, fields: dict[str, Any]
) -> None:
    """The events of a claim were bounded, but not their bodies: each endpoint had its own, once the
    cache was smaller than the events. A claim of 64 MiB had 4 GiB of them.
    """

    def forgetful(_: Posted) -> bytes:
        sink.posted.clear()
        return OK

    async with receiver(forgetful) as sink:
        events = world.events(10, body=bytes(EVENT_BYTES))
        for _ in range(20):
            world.deliver(events, world.endpoint(sink.url, batch_bytes_max=MIB, **fields))
        tracemalloc.start()
        try:
            async with draining(world):
                await until(lambda: world.count("delivered") == 200)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20 * MIB
    assert world.sql("SELECT DISTINCT attempts, claim FROM deliveries") == [(1, None)]
