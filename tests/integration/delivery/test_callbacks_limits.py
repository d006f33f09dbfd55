"""The rate limit, the concurrency and the timeout of an endpoint, kept by two workers together."""

import asyncio
import time

import pytest

from delivery.callbacks import claims
from delivery.callbacks.claims import CallbackEndpoint
from delivery.callbacks.throttles import within_throttles
from eventhub.base import limits
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    draining,
    receiver,
    until,
)

URL = "http://127.0.0.1:9/"


def limit(world: CallbacksWorld, endpoint: int, column: str, value: float) -> None:
    world.sql(f"UPDATE endpoints SET {column} = %s WHERE id = %s", value, endpoint)


@pytest.mark.parametrize("ordered", [False, True])
async def test_two_workers_keep_a_rate_limit(world: CallbacksWorld, ordered: bool) -> None:
    """60 requests at 20 per second: a second's worth at once, the others in two seconds."""
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=ordered)
        limit(world, endpoint, "rate_limit", 20)
        for _ in range(3):
            world.deliver(world.events(20), endpoint)
        async with draining(world), draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 60)
    times = sorted(posted.at_s for posted in sink.posted)
    assert len(times) == 60
    in_a_second = [sum(start <= at < start + 1 for at in times) for start in times]
    assert max(in_a_second) <= 2 * 20 + 2  # what the bucket held, and what flowed in
    assert 1.7 < times[-1] - times[0] < 6


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_rate_limit_counts_every_request_of_large_batches(
    world: CallbacksWorld, ordered: bool
) -> None:
    """A batch took one token, and all requests that its bytes need were made at once."""
    async with receiver() as sink:
        fields = {"batch_events_max": 100, "batch_bytes_max": 1024, "rate_limit": 2.0}
        endpoint = world.endpoint(sink.url, ordered=ordered, **fields)
        world.deliver(world.events(6, body=bytes(900)), endpoint)
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 6)
    times = [posted.at_s for posted in sink.posted]
    assert len(times) == 6
    assert times[-1] - times[0] > 1.6  # two at once, then two per second
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 6


async def test_a_rate_below_one_per_second_is_kept(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        limit(world, endpoint, "rate_limit", 0.8)
        world.deliver(world.events(3), endpoint)
        async with draining(world), draining(world):
            await until(lambda: len(sink.posted) == 3)
    times = [posted.at_s for posted in sink.posted]
    assert times[1] - times[0] > 1.1
    assert times[2] - times[1] > 1.1


@pytest.mark.parametrize("ordered", [False, True])
async def test_two_workers_keep_a_concurrency(world: CallbacksWorld, ordered: bool) -> None:
    now, most = 0, 0

    async def slowly(_: Posted) -> bytes:
        nonlocal now, most
        now += 1
        most = max(now, most)
        await asyncio.sleep(0.05)
        now -= 1
        return OK

    async with receiver(slowly) as sink:
        endpoint = world.endpoint(sink.url, ordered=ordered)
        limit(world, endpoint, "concurrency", 3)
        for _ in range(8):
            world.deliver(world.events(5), endpoint)
        async with draining(world), draining(world), draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 40, 30)
    assert most == 3


async def test_a_batch_is_one_request_of_the_concurrency(world: CallbacksWorld) -> None:
    """While two batches of ten hang, the third request of three goes on with the others."""
    arrived, all_arrived = 0, asyncio.Event()

    async def hangs(_: Posted) -> bytes:
        nonlocal arrived
        arrived += 1
        if arrived == 6:
            all_arrived.set()
        elif arrived <= 2:
            await asyncio.wait_for(all_arrived.wait(), 60)
        return OK

    async with receiver(hangs) as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10, concurrency=3)
        world.deliver(world.events(60), endpoint)
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 60)
    assert len(sink.posted) == 6


async def test_an_endpoint_without_limits_does_not_wait_for_one_that_has_them(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink:
        slow, fast = world.endpoint(sink.url), world.endpoint(sink.url)
        limit(world, slow, "rate_limit", 0.1)
        for endpoint in (slow, fast):
            world.deliver(world.events(300), endpoint)
        async with draining(world):
            await until(lambda: world.states(fast) == ["delivered"] * 300)
            assert world.states(slow).count("delivered") <= 5  # one in ten seconds


async def test_an_endpoint_has_a_timeout_of_its_own(world: CallbacksWorld) -> None:
    async def hangs(_: Posted) -> bytes:
        await asyncio.sleep(20)
        return OK

    started_s = time.monotonic()
    async with receiver(hangs) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        limit(world, endpoint, "timeout_s", 1)
        world.deliver(world.events(1), endpoint)
        await until(lambda: bool(world.outcomes(endpoint)))
    assert world.outcomes(endpoint)[0] == (1, "timeout", None)
    assert time.monotonic() - started_s < limits.CALLBACK_TIMEOUT_S_MAX


async def test_a_worker_skips_an_endpoint_for_which_another_one_is_claiming(
    world: CallbacksWorld,
) -> None:
    """And tokens that no claim used are returned."""
    id = world.endpoint(URL)
    limit(world, id, "rate_limit", 5)
    endpoints = {id: CallbackEndpoint(id, URL, 0, "v1", 1, "z", "native", rate_limit=5.0)}
    first = await claims.open_connection(world.url, "first")
    second = await claims.open_connection(world.url, "second")
    async with first, second:
        for _ in range(3):  # nothing is claimed
            requested = {id: 9}
            async with within_throttles(first, endpoints, requested) as throttle:
                assert requested == {id: 5}
                assert throttle.is_limiting
                others = {id: 9}
                async with within_throttles(second, endpoints, others) as other:
                    assert others == {}
                    assert other.is_limiting


async def test_a_clock_that_stepped_back_stops_no_endpoint(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        limit(world, endpoint, "rate_limit", 5)
        world.sql("INSERT INTO endpoint_throttles VALUES (%s, now() + interval '1 hour')", endpoint)
        world.deliver(world.events(3), endpoint)
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 3)
