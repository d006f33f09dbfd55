"""The database's clock steps back by an hour: stored times too far in the future are ignored.

The tests shift the stored times: after a step back all of them are that much further in the future.
The story: 2,331 deliveries waited as long as the step, and a stream had no owner for 250 s, because
forwarders that were dead counted as alive.
"""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from delivery.forward.leases import STREAMS, Leases, add_streams
from delivery.forward.write import writing_pool
from delivery.partitions.create import create_partitions
from eventhub.base import limits
from eventhub.base.clock import ManualClock
from registrations.catalog import CallbackStream
from tests.integration.callbacks_world import CallbacksWorld, Sent, draining, receiver, until
from tests.integration.forward_world import World, world_database

SHIFTED = "now() + interval '1 hour' + interval '3 s'"


@pytest.fixture(autouse=True)
def lowered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLBACK_REPAIR_INTERVAL_S", 0.3)
    monkeypatch.setattr(limits, "CALLBACK_SILENT_S", 1.5)
    monkeypatch.setattr(limits, "CALLBACK_HEARTBEAT_S", 0.2)
    monkeypatch.setattr(limits, "CALLBACK_IDLE_HEARTBEAT_S", 0.3)


def held_by_a_dead_worker(world: CallbacksWorld, endpoint: int, sent: Sent) -> None:
    """Write the worker's claims and its heartbeat as they are after the clock step."""
    worker = str(uuid4())[:18] + "-0000-000000000000"
    token = worker[:18] + "-0000-000000000007"
    world.sql(f"INSERT INTO callback_workers VALUES (%s, {SHIFTED})", worker)
    world.sql("UPDATE deliveries SET claim = %s WHERE endpoint_id = %s", token, endpoint)
    world.sql(
        f"UPDATE lanes SET token = %s, expires_at = {SHIFTED}, due_at = {SHIFTED}"
        " WHERE endpoint_id = %s",
        *(token, endpoint),
    )


@pytest.mark.parametrize("ordered", [False, True])
async def test_deliveries_do_not_wait_for_the_clock_to_come_back(
    world: CallbacksWorld, ordered: bool
) -> None:
    """Those never tried, those between two tries, those that a dead worker holds, with or without a
    sign of its life, those of an open circuit; what an answer asked for is kept."""
    async with receiver() as sink:
        kinds = ("new", "tried", "claimed", "held", "circuit open", "asked")
        endpoints = {kind: world.endpoint(sink.url, ordered=ordered) for kind in kinds}
        for kind, endpoint in endpoints.items():
            sent = world.events(40)
            world.deliver(sent, endpoint)
            if kind == "held":
                held_by_a_dead_worker(world, endpoint, sent)
            elif kind == "claimed":
                world.sql(
                    "UPDATE deliveries SET claim = %s WHERE endpoint_id = %s", uuid4(), endpoint
                )
        world.sql(f"UPDATE deliveries SET next_attempt_at = {SHIFTED}")
        more = (
            "UPDATE deliveries SET attempts = 3, pause_s = %s, next_attempt_at = {}"
            " WHERE endpoint_id = %s"
        )
        world.sql(more.format(SHIFTED), None, endpoints["tried"])
        world.sql(more.format("now() + interval '1000 s'"), 1_200, endpoints["asked"])
        world.open_circuit(endpoints["circuit open"], pause_s=8, until=SHIFTED)
        async with draining(world):
            await until(lambda: world.count("delivered") == 200)
        assert world.states(endpoints["asked"]) == ["pending"] * 40
    assert len(set(sink.ids())) == len(sink.posted) == 200


async def test_many_endpoints_are_examined_in_batches_while_their_worker_is_alive(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tens of thousands of endpoints the statement was cancelled each time: claims of dead
    workers were not released, and the worker itself was considered dead.
    """
    monkeypatch.setattr(limits, "CALLBACK_SCAN_ENDPOINTS_MAX", 20)
    monkeypatch.setattr(limits, "STATEMENT_TIMEOUT_S_MAX", 2)
    world.sql(
        "CREATE OR REPLACE FUNCTION is_due(next_attempt_at timestamptz, claim uuid, pause_s float8)"
        " RETURNS boolean LANGUAGE sql AS 'SELECT false FROM pg_sleep(0.03)'"
    )
    sent = world.events(1)
    for _ in range(100):
        world.deliver(sent, world.endpoint("http://127.0.0.1:9/"))
    world.sql("UPDATE deliveries SET attempts = 9, next_attempt_at = now() + interval '100 s'")
    async with receiver() as sink:
        left, held = (world.endpoint(sink.url) for _ in range(2))
        for endpoint in (left, held):
            world.deliver(sent, endpoint)
        held_by_a_dead_worker(world, held, sent)
        world.sql("UPDATE callback_workers SET last_seen_at = now()")
        ahead = "UPDATE deliveries SET next_attempt_at = {} WHERE endpoint_id = %s"
        world.sql(ahead.format("now() + interval '40 s'"), held)
        world.sql("UPDATE deliveries SET claim = %s WHERE endpoint_id = %s", uuid4(), left)
        world.sql(ahead.format(SHIFTED), left)
        async with draining(world):
            await until(lambda: world.count("delivered") == 2, 25)


@pytest.fixture(scope="module")
def forwarding() -> Iterator[World]:
    yield from world_database()


async def test_a_dead_forwarder_holds_no_stream_after_the_clock_was_set_back(
    forwarding: World,
) -> None:
    async with writing_pool(forwarding.url) as pool, pool.connection() as connection:
        while not await create_partitions(connection):
            pass
        for _ in range(6):
            stream = forwarding.stream()
            heads = "SELECT segment::text FROM heads WHERE stream_id = %s"
            [[segment]] = forwarding.sql(heads, stream)
            await add_streams(connection, [CallbackStream(stream, segment, 0)])
        dead, living = Leases(ManualClock(), STREAMS), Leases(ManualClock(), STREAMS)
        await dead.renew(connection)
        assert len(await dead.acquire(connection)) == 6
        forwarding.sql(f"UPDATE forwarding SET expires_at = {SHIFTED}")
        forwarding.sql(f"UPDATE forwarders SET last_seen_at = {SHIFTED}")
        await living.renew(connection)
        assert living.share.forwarders == 1
        assert len(await living.acquire(connection)) == 6
        assert await living.acquire(connection) == []
