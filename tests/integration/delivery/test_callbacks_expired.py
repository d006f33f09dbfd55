"""Expired events: checked before every request.

The story: an event was posted after its `expires_at`, even at the first attempt.
"""

import asyncio
import time

import pytest

from tests.busy import stretched
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    answer,
    draining,
    receiver,
    until,
)


def in_us(seconds: float) -> int:
    return time.time_ns() // 1_000 + int(seconds * 1e6)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("format", ["native", "cloudevents_binary"])
async def test_an_expired_event_is_not_posted_and_ends_as_expired(
    world: CallbacksWorld, ordered: bool, format: str
) -> None:
    over = world.events(2, expires_at_us=in_us(-1))
    later = world.events(2, stream_id=over.stream_id, expires_at_us=in_us(3_600))
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url, ordered=ordered, format=format)
        world.deliver(over, endpoint)
        world.deliver(later, endpoint)
        await until(lambda: world.states(endpoint) == ["expired"] * 2 + ["delivered"] * 2)
    assert sorted(sink.sequences()) == later.sequences
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 2
    rows = world.sql("SELECT attempts, finished_at IS NOT NULL FROM deliveries ORDER BY sequence")
    assert rows == [(0, True), (0, True), (1, True), (1, True)]


async def test_an_event_that_expires_between_two_attempts_is_not_retried(
    world: CallbacksWorld,
) -> None:
    async with receiver(lambda _: answer("500 Oops")) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        ends_s = time.monotonic() + 4
        world.deliver(world.events(1, expires_at_us=in_us(4)), endpoint)
        await until(lambda: world.states(endpoint) == ["expired"])
    assert sink.posted
    assert sink.posted[-1].at_s < ends_s + stretched(0.5)
    assert len(world.outcomes(endpoint)) == len(sink.posted)


async def test_an_event_that_expires_while_its_lane_waits_is_not_posted(
    world: CallbacksWorld,
) -> None:
    async def slowly(posted: Posted) -> bytes:
        if posted.headers["webhook-id"].split("_")[2] == "1":
            await asyncio.sleep(1.2)
        return OK

    first = world.events(1)
    async with receiver(slowly) as sink, draining(world):
        endpoint = world.endpoint(sink.url, ordered=True)
        short = world.events(1, stream_id=first.stream_id, expires_at_us=in_us(1))
        last = world.events(1, stream_id=first.stream_id)
        for sent in (first, short, last):
            world.deliver(sent, endpoint)
        await until(lambda: world.states(endpoint) == ["delivered", "expired", "delivered"])
    assert sink.sequences() == [1, 3]


async def test_a_probe_with_an_expired_event_is_repeated_with_another(
    world: CallbacksWorld,
) -> None:
    """Events that expire while a circuit is open say nothing of the endpoint, and delay nothing."""
    over = world.events(3, expires_at_us=in_us(-1))
    async with receiver() as sink:
        for ordered in (False, True):
            endpoint = world.endpoint(sink.url, ordered=ordered)
            world.deliver(over, endpoint)
            world.open_circuit(endpoint)
            world.deliver(world.events(3, stream_id=over.stream_id), endpoint)
            async with draining(world):
                done = ["expired"] * 3 + ["delivered"] * 3
                await until(lambda: world.states(endpoint) == done)  # noqa: B023


@pytest.mark.parametrize("ordered", [False, True])
async def test_many_expired_events_of_an_unavailable_endpoint_delay_nothing(
    world: CallbacksWorld, ordered: bool
) -> None:
    """Each took the one request of a second: 100,000 took a day."""
    over = world.events(200, expires_at_us=in_us(-1))
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=ordered)
        world.deliver(over, endpoint)
        world.open_circuit(endpoint)
        world.deliver(world.events(1, stream_id=over.stream_id), endpoint)
        async with draining(world):
            await until(lambda: "delivered" in world.states(endpoint))
