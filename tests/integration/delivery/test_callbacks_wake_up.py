"""How a worker learns of new deliveries, and how long they wait for it."""

import asyncio
import time
from statistics import median
from uuid import UUID

import pytest

from eventhub.base import limits
from tests.integration.callbacks_world import CallbacksWorld, draining, receiver, until

FIRST = UUID(int=0)  # a worker before all others


def _send_heartbeat(world: CallbacksWorld) -> None:
    world.sql(
        "INSERT INTO callback_workers (id, last_seen_at) VALUES (%s, clock_timestamp())"
        " ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at",
        FIRST,
    )


async def test_a_notification_that_chose_another_worker_is_obeyed_a_little_later(
    world: CallbacksWorld,
) -> None:
    """It may be gone. Until then two that claim together would be in each other's way."""
    beat = "SELECT last_seen_at FROM callback_workers WHERE id <> %s"
    took: dict[str, list[float]] = {"0": [], "1": []}
    async with receiver() as sink, draining(world):
        await until(lambda: bool(world.sql(beat, FIRST)))
        endpoint, stream = world.endpoint(sink.url), world.events(1).stream_id
        _send_heartbeat(world)
        before = world.sql(beat, FIRST)
        await until(lambda: world.sql(beat, FIRST) != before)  # with which the worker counts others
        for number in range(1, 11):
            _send_heartbeat(world)
            notice = str(number % 2)
            began_s = time.monotonic()
            world.deliver(world.events(1, stream_id=stream), endpoint, notice=notice)
            await until(lambda posted=number: len(sink.posted) >= posted)  # type: ignore[misc]
            took[notice].append(time.monotonic() - began_s)
    assert limits.CALLBACK_RELIEF_S < median(took["0"]) < limits.CALLBACK_SCAN_INTERVAL_S / 2, took
    assert median(took["1"]) < median(took["0"]), took


async def test_a_worker_that_rests_sends_a_heartbeat_when_it_is_notified(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on others may hold claims, and it has to notice when one of them dies."""
    monkeypatch.setattr(limits, "CALLBACK_REST_AFTER_S", 0.2)
    monkeypatch.setattr(limits, "CALLBACK_IDLE_HEARTBEAT_S", 0.05)
    monkeypatch.setattr(limits, "CALLBACK_REST_HEARTBEAT_S", 3_600.0)
    beats = "SELECT last_seen_at FROM callback_workers"
    rests = f"{beats} WHERE last_seen_at < clock_timestamp() - interval '0.5 s'"
    async with receiver() as sink, draining(world):
        await until(lambda: bool(world.sql(rests)))
        before, endpoint = world.sql(beats), world.endpoint(sink.url)
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.sql(beats) != before)
        await until(lambda: bool(sink.posted))


async def test_a_unit_of_work_waits_a_while_for_further_deliveries(world: CallbacksWorld) -> None:
    units: set[asyncio.Task[int]] = set()
    async with receiver() as sink, draining(world, units=units):
        endpoint, stream = world.endpoint(sink.url), world.events(1).stream_id
        for number in range(1, 4):
            world.deliver(world.events(1, stream_id=stream), endpoint)
            await until(lambda posted=number: len(sink.posted) >= posted)  # type: ignore[misc]
        await until(lambda: world.states(endpoint) == ["delivered"] * 3)
        await until(lambda: bool(units) and all(each.done() for each in units))
    assert [each.result() for each in units] == [3]
