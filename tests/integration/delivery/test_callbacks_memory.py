"""The memory of a worker while large events are due, with real dispatchers and receivers."""

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


@pytest.fixture(autouse=True)
def lowered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLBACK_EVENT_BYTES_CACHED_MAX", MIB)
    monkeypatch.setattr(limits, "CALLBACK_CLAIM_BYTES_MAX", MIB)
    monkeypatch.setattr(limits, "CALLBACK_BYTES_HELD_MAX", 2 * MIB)


@pytest.mark.parametrize(
    "fields",
    [{}, {"ordered": True}, {"batch_events_max": 100}, {"ordered": True, "batch_events_max": 100}],
)
async def test_large_events_are_read_as_they_are_posted(
    world: CallbacksWorld, fields: dict[str, Any]
) -> None:
    """A worker read all events that it had claimed: of batches up to four thousand."""

    def forgetful(posted: Posted) -> bytes:
        sizes.append(len(posted.body))
        sink.posted.clear()
        return OK

    sizes: list[int] = []
    async with receiver(forgetful) as sink:
        endpoint = world.endpoint(sink.url, batch_bytes_max=MIB, **fields)
        world.deliver(world.events(EVENTS, body=bytes(EVENT_BYTES)), endpoint)
        tracemalloc.start()
        try:
            async with draining(world):
                await until(lambda: world.count("delivered") == EVENTS)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(sizes) > EVENTS * EVENT_BYTES
    assert peak < 14 * MIB
    if fields.get("ordered"):
        sent = world.sql("SELECT sequence FROM attempts ORDER BY attempted_at, sequence")
        assert sent == sorted(sent)
    assert world.sql("SELECT DISTINCT attempts, claim FROM deliveries") == [(1, None)]
