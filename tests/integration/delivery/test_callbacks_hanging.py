"""Many endpoints that never answer, and their effect on others, with real drains and receivers.

The story: 64 endpoints at a silent server were tried again and again, hundreds of others never, and
a new healthy endpoint waited with them.
"""

import asyncio
import time
from collections import Counter

import pytest

from eventhub.base import limits
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    Receiver,
    draining,
    receiver,
    until,
)

HANGING = 100


@pytest.fixture(autouse=True)
def lowered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce all times to a sixth or less, shares to a quarter, and pages to a part of the
    endpoints.
    """
    lowered = {
        "CALLBACK_SLOTS_MAX": 144,
        "CALLBACK_SLOTS_UNPROVEN_MAX": 96,
        "CALLBACK_SLOTS_NEW_MAX": 16,
        "CALLBACK_SLOTS_TROUBLE_MAX": 16,
        "CALLBACK_SLOW_S": 0.33,
        "CALLBACK_TIMEOUT_S_MAX": 2.0,
        "CALLBACK_SCAN_INTERVAL_S": 0.16,
        "CALLBACK_SCAN_ENDPOINTS_MAX": 40,
    }
    for name, value in lowered.items():
        monkeypatch.setattr(limits, name, value)


async def never(_: Posted) -> bytes:
    await asyncio.sleep(3_600)
    return b""


def hanging(world: CallbacksWorld, sink: Receiver, *, ordered: bool) -> None:
    sent = world.events(3)
    for number in range(HANGING):
        world.deliver(sent, world.endpoint(f"{sink.url}/{number}", ordered=ordered))


async def seconds_to_deliver(world: CallbacksWorld, url: str, *, ordered: bool = False) -> float:
    endpoint = world.endpoint(url, ordered=ordered)
    began_s = time.monotonic()
    world.deliver(world.events(1), endpoint)
    await until(lambda: world.states(endpoint) == ["delivered"], 30)
    return time.monotonic() - began_s


@pytest.mark.parametrize("ordered", [False, True])
async def test_every_endpoint_is_tried_in_rotation_and_a_new_one_soon(
    world: CallbacksWorld, ordered: bool
) -> None:
    async with receiver(never) as sink, receiver() as healthy:
        hanging(world, sink, ordered=ordered)
        async with draining(world):
            await until(lambda: len(sink.posted) >= limits.CALLBACK_SLOTS_NEW_MAX)
            world.client_id = world.one(
                "INSERT INTO clients (zone_id, name, created_at)"
                " SELECT id, 'bakery', now() FROM zones WHERE name = 'default' RETURNING id"
            )
            assert await seconds_to_deliver(world, healthy.url, ordered=ordered) < 10
            tried: Counter[str] = Counter()

            def all_tried() -> bool:
                tried.clear()
                tried.update(posted.path for posted in sink.posted)
                return len(tried) == HANGING

            await until(all_tried, 30)
            assert max(tried.values()) <= 3  # others were not tried again and again meanwhile
            for kind in (False, True):
                assert await seconds_to_deliver(world, healthy.url, ordered=kind) < 10


async def test_two_workers_try_all_endpoints_and_rotate_failing_ones(world: CallbacksWorld) -> None:
    async with receiver(never) as sink, receiver() as healthy:
        hanging(world, sink, ordered=False)
        async with draining(world), draining(world):
            await until(lambda: len({posted.path for posted in sink.posted}) == HANGING, 30)
            seen = len(sink.posted)
            world.sql("UPDATE deliveries SET next_attempt_at = now() WHERE claim IS NULL")
            await until(lambda: len({p.path for p in sink.posted[seen:]}) > HANGING * 0.9, 60)
            assert await seconds_to_deliver(world, healthy.url) < 10


@pytest.mark.parametrize("ordered", [False, True])
async def test_healthy_endpoints_that_hang_together_delay_others_only_briefly(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """The story: they held all slots of a worker until their requests timed out."""
    monkeypatch.setattr(limits, "CALLBACK_TIMEOUT_S_MAX", 10.0)
    hangs = False

    async def until_it_hangs(_: Posted) -> bytes:
        return await never(_) if hangs else OK

    async with receiver(until_it_hangs) as sink, receiver() as healthy, draining(world):
        good = [world.endpoint(f"{sink.url}/{number}") for number in range(20)]
        sent = world.events(20)
        for endpoint in good:
            world.deliver(sent, endpoint)
        await until(lambda: world.count("delivered") == 400)
        hangs, seen = True, len(sink.posted)
        sent = world.events(20)
        for endpoint in good:
            world.deliver(sent, endpoint)
        await until(lambda: len(sink.posted) - seen >= limits.CALLBACK_SLOTS_MAX / 2)
        assert await seconds_to_deliver(world, healthy.url, ordered=ordered) < 5
        world.client_id = world.one(
            "INSERT INTO clients (zone_id, name, created_at)"
            " SELECT id, 'bakery', now() FROM zones WHERE name = 'default' RETURNING id"
        )
        assert await seconds_to_deliver(world, healthy.url, ordered=ordered) < 5
