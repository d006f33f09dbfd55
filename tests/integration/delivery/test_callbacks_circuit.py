"""The circuit breakers of endpoints that fail as a whole: what they cost, and what is delivered
when they recover.

The story: 300 deliveries pending for an endpoint that answered 500 at once made 1,667 requests in
20 s, and each of them used up its own attempts.
"""

import asyncio
import time

import pytest

from eventhub.base import limits
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    answer,
    draining,
    receiver,
    until,
)

FAILS = answer("500 Oops")
WAITING = 300
STREAMS = 10


@pytest.fixture(autouse=True)
def lowered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_S_BASE", 0.2)
    monkeypatch.setattr(limits, "CALLBACK_SCAN_INTERVAL_S", 0.1)


def add_deliveries(world: CallbacksWorld, url: str, *, ordered: bool) -> int:
    """Create the endpoint, with 300 pending deliveries of ten streams."""
    endpoint = world.endpoint(url, ordered=ordered)
    for _ in range(STREAMS):
        world.deliver(world.events(WAITING // STREAMS), endpoint)
    return endpoint


def circuit(world: CallbacksWorld, endpoint: int) -> tuple[str, int, float]:
    """Return the state of an endpoint's circuit, its failures in a row and its pause."""
    rows = world.sql(
        "SELECT state, failures, pause_s FROM circuits WHERE endpoint_id = %s", endpoint
    )
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else ("closed", 0, 0.0)


def pause_s(world: CallbacksWorld, endpoint: int) -> float:
    """Return the pause of the endpoint's circuit; 0 while it is closed."""
    state, _, pause = circuit(world, endpoint)
    return 0.0 if state == "closed" else pause


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_failing_endpoint_costs_a_few_requests_and_its_backlog_drains_on_recovery(
    world: CallbacksWorld, ordered: bool
) -> None:
    async with receiver(lambda _: FAILS) as sink:
        endpoint = add_deliveries(world, sink.url, ordered=ordered)
        async with draining(world), draining(world):
            await until(lambda: pause_s(world, endpoint) >= 1.6)  # three probes failed
            assert len(sink.posted) <= 2 * (limits.CALLBACK_CIRCUIT_FAILURES + STREAMS) + 4
            failed, answered_s = len(sink.posted), time.monotonic()
            sink.script = lambda _: OK
            await until(lambda: world.states(endpoint) == ["delivered"] * WAITING)
    again = sink.posted[failed:]
    assert again[0].at_s - answered_s < 3.5  # the last pause, and a scan
    assert again[-1].at_s - again[0].at_s < 5
    assert len(again) == WAITING
    if ordered:
        for stream in {posted.headers["webhook-id"].split("_")[1] for posted in again}:
            own = [id for id in sink.ids()[failed:] if id.split("_")[1] == stream]
            assert own == sorted(own, key=lambda id: int(id.split("_")[2]))


async def test_an_open_circuit_survives_the_workers_and_is_shared_by_all(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_S_BASE", 60.0)
    async with receiver(lambda _: FAILS) as sink, receiver() as healthy:
        endpoint = add_deliveries(world, sink.url, ordered=False)
        async with draining(world):
            await until(lambda: pause_s(world, endpoint) > 0)
        seen = len(sink.posted)
        async with draining(world), draining(world):
            other = world.endpoint(healthy.url)
            world.deliver(world.events(20), other)
            await until(lambda: world.states(other) == ["delivered"] * 20)
        assert len(sink.posted) == seen


async def test_the_whole_endpoint_obeys_retry_after(world: CallbacksWorld) -> None:
    async with receiver(lambda _: answer("429 Slow Down", "Retry-After: 1200")) as sink:
        endpoint = add_deliveries(world, sink.url, ordered=False)
        async with draining(world):
            await until(lambda: pause_s(world, endpoint) > 0)
    [(left,)] = world.sql("SELECT extract(epoch FROM retry_at - now()) FROM circuits")
    assert 1_100 < left <= 1_200
    assert len(sink.posted) < 20


async def test_an_endpoint_that_is_changed_while_its_circuit_is_open_is_called_at_once(
    world: CallbacksWorld,
) -> None:
    """Its old URL had sent a Retry-After of an hour, and the new one was not called before."""
    asks = answer("429 Slow Down", "Retry-After: 3600")
    async with receiver(lambda _: asks) as old, receiver() as new, draining(world):
        endpoint = add_deliveries(world, old.url, ordered=False)
        await until(lambda: pause_s(world, endpoint) > 0)
        change = "UPDATE endpoints SET url = %s, changed_at = now() WHERE id = %s"
        world.sql(change, new.url, endpoint)
        await until(lambda: len(new.posted) > WAITING / 2)


async def test_an_endpoint_that_is_changed_during_a_probe_is_called_after_it_at_once(
    world: CallbacksWorld,
) -> None:
    """The probe of its old URL ended after the change, with a Retry-After of an hour."""
    probed, ended = asyncio.Event(), asyncio.Event()

    async def asks(_: Posted) -> bytes:
        if not world.one("SELECT count(*) FROM circuits WHERE state = 'half_open'"):
            return answer("429 Slow Down", "Retry-After: 1")
        probed.set()
        await ended.wait()
        return answer("429 Slow Down", "Retry-After: 3600")

    async with receiver(asks) as old, receiver() as new, draining(world):
        endpoint = add_deliveries(world, old.url, ordered=False)
        await asyncio.wait_for(probed.wait(), 40)
        change = "UPDATE endpoints SET url = %s, changed_at = now() WHERE id = %s"
        world.sql(change, new.url, endpoint)
        ended.set()
        await until(lambda: len(new.posted) > WAITING / 2)


async def test_the_circuit_of_a_healthy_endpoint_that_refuses_one_in_five_stays_closed(
    world: CallbacksWorld,
) -> None:
    numbers = iter(range(10_000))
    async with receiver(lambda _: FAILS if next(numbers) % 5 == 0 else OK) as sink:
        endpoint = add_deliveries(world, sink.url, ordered=False)
        async with draining(world):
            await until(lambda: world.states(endpoint).count("delivered") > 200)
            assert pause_s(world, endpoint) == 0


async def test_failures_that_are_written_together_with_a_delivery_do_not_count_for_ever(
    world: CallbacksWorld,
) -> None:
    """One success and 31 failures fell within one write: the worker took the 31 for unwritten, and
    never called the endpoint again.
    """
    bad = iter(range(32))

    async def refuses(_: Posted) -> bytes:
        number = next(bad, None)
        if number:
            await asyncio.sleep(0.005)
        return FAILS if number else OK

    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(64), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"] * 64)
        sink.script = refuses
        world.deliver(world.events(32), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"] * 96)


def add_postponed(world: CallbacksWorld, url: str, *, ordered: bool = False) -> int:
    """Create an endpoint that has failed for 26 hours: three deliveries are pending, of which those
    that were attempted are due in ten hours; in order, the first one.
    """
    endpoint = world.endpoint(url, ordered=ordered)
    sent = world.events(3)
    world.deliver(sent, endpoint)
    world.sql(
        "UPDATE deliveries SET attempts = 6, last_outcome = 'status',"
        " pause_s = 36000 + 60 * sequence, next_attempt_at = now()"
        " + interval '10 hours' + sequence * interval '1 minute'"
        " WHERE endpoint_id = %s AND sequence <= %s",
        *(endpoint, 1 if ordered else 3),
    )
    world.sql(
        "UPDATE lanes SET due_at = now() + interval '10 hours' WHERE endpoint_id = %s", endpoint
    )
    world.open_circuit(endpoint, pause_s=0.2)
    world.sql(
        "UPDATE circuits SET failing_since = now() - interval '26 hours',"
        " opened_at = now() - interval '26 hours', segment_id = %s WHERE endpoint_id = %s",
        *(sent.segment_id, endpoint),
    )
    return endpoint


def schedules(world: CallbacksWorld, endpoint: int) -> list[tuple[int, bool]]:
    """Return of each delivery the attempts that count, and whether it is due in ten hours."""
    return world.sql(
        "SELECT attempts - uncounted_attempts, next_attempt_at BETWEEN"
        " now() + interval '10 hours' AND now() + interval '10 hours 3 minutes'"
        " FROM deliveries WHERE endpoint_id = %s ORDER BY sequence",
        endpoint,
    )


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_receiver_that_is_back_is_probed_although_nothing_is_due(
    world: CallbacksWorld, ordered: bool
) -> None:
    """An ordered endpoint that was back after a day got its deliveries fourteen hours later, when
    the next attempt was due.
    """
    async with receiver(lambda _: FAILS) as sink:
        endpoint = add_postponed(world, sink.url, ordered=ordered)
        async with draining(world):
            await until(lambda: len(sink.posted) >= 3)
            sink.script = lambda _: OK
            await until(lambda: circuit(world, endpoint)[0] == "closed")
            await until(lambda: world.states(endpoint) == ["delivered"] * 3)
    assert len(set(sink.ids()[:3])) == 1, "the one that is due next"


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_failed_probe_leaves_the_schedule_of_its_delivery_as_it_was(
    world: CallbacksWorld, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_S_BASE", 60.0)
    async with receiver(lambda _: FAILS) as sink:
        endpoint = add_postponed(world, sink.url, ordered=ordered)
        before = schedules(world, endpoint)
        assert before == ([(6, True), (0, False), (0, False)] if ordered else [(6, True)] * 3)
        async with draining(world):
            await until(lambda: pause_s(world, endpoint) >= 60)
        assert len(sink.posted) == 1
    assert schedules(world, endpoint) == before
    [(most,)] = world.sql("SELECT max(attempts) FROM deliveries WHERE endpoint_id = %s", endpoint)
    assert most == 7, "attempts are recorded"
