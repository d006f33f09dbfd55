"""A worker's results are not written if another worker has claimed the delivery meanwhile.

The story: with the token removed from one of these statements every test stayed green, while late
results overwrote others, events came twice and lanes lost their order.
"""

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg
import pytest

from delivery.callbacks import claims
from delivery.callbacks.claims import Claimed, LaneCounts, LaneKey
from delivery.callbacks.results import AttemptRecord, DeliveryResult, write_results
from delivery.callbacks.retry import RetryDecision
from delivery.partitions import retire
from delivery.partitions.create import deliveries_partition
from eventhub.postgresql.connections import Connection
from tests.integration.callbacks_world import (
    CallbacksWorld,
    claim_parallel,
    draining,
    receiver,
    until,
)

END_WAITING = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'eventhub dispatcher'
       AND wait_event_type = 'Lock'
"""

WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'eventhub test'
       AND wait_event_type = 'Lock'
"""


@pytest.fixture
async def connection(world: CallbacksWorld) -> AsyncIterator[Connection]:
    async with await claims.open_connection(world.url, "test") as connection:
        yield connection


async def claimed_twice(world: CallbacksWorld, connection: Connection) -> tuple[Claimed, Claimed]:
    """Return the expired claim of a delivery, and the later claim that replaced it."""
    endpoint = world.endpoint("http://127.0.0.1:9/")
    world.deliver(world.events(1), endpoint)
    [late] = await claim_parallel(connection, {endpoint: 9})
    world.sql("UPDATE deliveries SET next_attempt_at = now() WHERE endpoint_id = %s", endpoint)
    [holder] = await claim_parallel(connection, {endpoint: 9})
    return late, holder


def result(claimed: Claimed, outcome: str, decision: RetryDecision) -> DeliveryResult:
    return DeliveryResult(
        claimed, decision, AttemptRecord(outcome, 500, time.monotonic(), 1, "", "", "")
    )


@pytest.mark.parametrize(
    "decision", [RetryDecision("pending", 5.0), RetryDecision("dead_lettered")]
)
async def test_a_late_result_is_not_written_while_another_posts(
    world: CallbacksWorld, connection: Connection, decision: RetryDecision
) -> None:
    late, holder = await claimed_twice(world, connection)
    now_s = time.monotonic()
    written = await write_results(connection, [result(late, "status", decision)], now_s)
    assert written.results == 0
    assert world.states(holder.endpoint_id) == ["pending"]
    taken = result(holder, "delivered", RetryDecision("delivered"))
    assert (await write_results(connection, [taken], now_s)).results == 1
    assert world.states(holder.endpoint_id) == ["delivered"]
    assert [outcome for _, outcome, _ in world.outcomes(holder.endpoint_id)] == ["delivered"]


async def test_a_claim_given_back_late_stays_with_its_new_holder(
    world: CallbacksWorld, connection: Connection
) -> None:
    late, holder = await claimed_twice(world, connection)
    await claims.give_back(connection, [late])
    assert await claim_parallel(connection, {holder.endpoint_id: 9}) == []
    await claims.give_back(connection, [holder])
    assert len(await claim_parallel(connection, {holder.endpoint_id: 9})) == 1


async def test_a_lane_freed_late_stays_with_its_new_holder(
    world: CallbacksWorld, connection: Connection
) -> None:
    endpoint = world.endpoint("http://127.0.0.1:9/", ordered=True)
    sent = world.events(2)
    world.deliver(sent, endpoint)
    lane, requested = LaneKey(endpoint, sent.stream_id), {endpoint: LaneCounts(1, 32, 32)}
    [[late, _]] = await claims.claim_lanes(connection, requested)
    world.sql(
        "UPDATE lanes SET expires_at = now(), due_at = now() WHERE endpoint_id = %s", endpoint
    )
    world.sql("UPDATE deliveries SET next_attempt_at = now() WHERE endpoint_id = %s", endpoint)
    [[holder, _]] = await claims.claim_lanes(connection, requested)
    await claims.leave_lanes(connection, [(lane, late.token)])
    assert await claims.claim_lanes(connection, requested) == []
    await claims.leave_lanes(connection, [(lane, holder.token)])
    world.sql("UPDATE deliveries SET next_attempt_at = now() WHERE endpoint_id = %s", endpoint)
    assert len(await claims.claim_lanes(connection, requested)) == 1


async def test_a_lane_waits_for_its_deliveries_that_move_to_another_partition(
    world: CallbacksWorld, connection: Connection
) -> None:
    """A partition was retired while its lane was claimed: deliveries of the next partition were
    posted before those that had moved.
    """
    endpoint = world.endpoint("http://127.0.0.1:9/", ordered=True)
    sent = world.events(4)
    world.deliver(sent, endpoint)
    requested = {endpoint: LaneCounts(1, 32, 32)}
    world.partition(deliveries_partition(newest := sent.partition_id + 1))
    move = {"partition_id": sent.partition_id, "newest": newest, "rows_max": 2, "claim_s": 45}
    with psycopg.connect(world.url) as other:
        assert other.execute(retire.SQL["move_pending"], move).rowcount == 2
        claiming = asyncio.create_task(claims.claim_lanes(connection, requested))
        await until(lambda: world.sql(WAITING) == [(1,)])
    assert await claiming == []
    [found] = await claims.claim_lanes(connection, requested)
    assert [each.sequence for each in found] == sent.sequences


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_claim_is_free_again_when_its_worker_lost_the_connection(
    world: CallbacksWorld, ordered: bool
) -> None:
    """PostgreSQL ended between the claim and the answer. The worker was alive, so nobody freed a
    claim that it did not know of, and a lane waited for 45 s.
    """
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url, ordered=ordered)
        sent = world.events(3)
        with psycopg.connect(world.url) as other:
            other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            world.deliver(sent, endpoint)
            await until(lambda: world.sql(END_WAITING) == [(True,)])
        await until(lambda: world.states(endpoint) == ["delivered"] * 3)
        assert sink.sequences() == sent.sequences or not ordered
        assert len(sink.posted) == 3
