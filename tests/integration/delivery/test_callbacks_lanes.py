"""Deliveries that are ordered by key: lanes of their own, which are taken when they are due."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from delivery.callbacks import claims
from delivery.callbacks.claims import LaneCounts, LaneKey
from eventhub.postgresql.connections import Connection
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    answer,
    draining,
    receiver,
    until,
)

A, B, C = -1, -2, -3  # lanes
DUE = "SELECT stream_id, due_at <= now(), touched FROM lanes WHERE endpoint_id = %s ORDER BY 1 DESC"
ONE_EACH = LaneCounts(100, 100, 1)


@pytest.fixture
async def connection(world: CallbacksWorld) -> AsyncIterator[Connection]:
    async with await claims.open_connection(world.url, "test") as connection:
        yield connection


async def test_a_key_that_fails_blocks_its_own_lane_only(world: CallbacksWorld) -> None:
    def poisoned(posted: Posted) -> bytes:
        return answer("500 Oops") if posted.headers["webhook-id"].split("_")[2] == "1" else OK

    async with receiver(poisoned) as sink:
        endpoint = world.endpoint(sink.url, ordered=True, order_by="@key")
        sent = world.events(9)
        world.deliver(sent, endpoint, lanes=[A, B, C] * 3)
        async with draining(world):
            await until(lambda: world.count("delivered") == 6)
            await until(lambda: sink.sequences().count(1) > 2)
            assert world.count("pending") == 3  # 1, and behind it 4 and 7
            sink.script = lambda _: OK
            await until(lambda: world.count("delivered") == 9)
    first = list(dict.fromkeys(sink.sequences()))
    for lane in ([1, 4, 7], [2, 5, 8], [3, 6, 9]):
        assert [each for each in first if each in lane] == lane
    assert world.sql("SELECT count(*) FROM lanes") == [(0,)]


async def test_lanes_are_posted_in_parallel(world: CallbacksWorld) -> None:
    gate = asyncio.Event()

    async def wait(_: Posted) -> bytes:
        await gate.wait()
        return OK

    async with receiver(wait) as sink:
        endpoint = world.endpoint(sink.url, ordered=True, order_by="@key")
        world.deliver(world.events(8), endpoint, lanes=[A, B] * 4)
        async with draining(world):
            await until(lambda: len(sink.posted) == 2)
            assert sorted(sink.sequences()) == [1, 2]
            gate.set()
            await until(lambda: world.count("delivered") == 8)
    assert [each for each in sink.sequences() if each % 2] == [1, 3, 5, 7]


async def test_only_due_lanes_are_taken_those_that_wait_longest_first(
    world: CallbacksWorld, connection: Connection
) -> None:
    endpoint = world.endpoint("http://127.0.0.1:9/", ordered=True, order_by="@key")
    world.deliver(world.events(30), endpoint, lanes=[A, B, C] * 10)
    world.sql("UPDATE lanes SET due_at = now() + interval '1 hour' WHERE stream_id = %s", A)
    world.sql("UPDATE lanes SET due_at = now() - interval '1 hour' WHERE stream_id = %s", C)
    [[first]] = await claims.claim_lanes(connection, {endpoint: LaneCounts(1, 9, 1)})
    assert first.lane == LaneKey(endpoint, C)
    [second] = await claims.claim_lanes(connection, {endpoint: LaneCounts(9, 9, 4)})
    assert [each.lane_number for each in second] == [B] * 4
    assert await claims.claim_lanes(connection, {endpoint: ONE_EACH}) == []
    found = await claims.scan_lanes(connection, 0)
    assert not found.due


async def test_a_delivery_that_is_written_while_its_lane_is_held_or_left_is_not_forgotten(
    world: CallbacksWorld, connection: Connection
) -> None:
    """The writer and the worker that leaves the lane lock its row, so one sees the other."""
    endpoint = world.endpoint("http://127.0.0.1:9/", ordered=True, order_by="@key")
    sent = world.events(3)
    one, two, three = (sent._replace(sequences=[each]) for each in sent.sequences)
    world.deliver(one, endpoint, lanes=[A])
    [[held]] = await claims.claim_lanes(connection, {endpoint: ONE_EACH})
    world.deliver(two, endpoint, lanes=[A])
    assert world.sql(DUE, endpoint) == [(A, False, True)]
    world.sql("UPDATE deliveries SET state = 'delivered', claim = NULL WHERE sequence = 1")
    assert await claims.leave_lanes(connection, [(held.lane, held.token)]) == 1

    [[held]] = await claims.claim_lanes(connection, {endpoint: ONE_EACH})
    world.sql("UPDATE deliveries SET state = 'delivered', claim = NULL WHERE sequence = 2")
    insert = (
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " ordered, lane, registrations) VALUES (%s, %s, %s, %s, %s, true, %s, '{7}')"
    )
    mark = "UPDATE lanes SET touched = true WHERE endpoint_id = %s"
    with psycopg.connect(world.url) as writer:
        values = (three.partition_id, endpoint, three.segment_id, 3, three.stream_id, A)
        writer.execute(insert, values)
        writer.execute(mark, (endpoint,))
        leaving = asyncio.create_task(claims.leave_lanes(connection, [(held.lane, held.token)]))
        await until(lambda: waits(world))
    assert await leaving == 1  # its snapshot is older than the delivery
    [[held]] = await claims.claim_lanes(connection, {endpoint: ONE_EACH})
    assert held.sequence == 3
    world.sql("UPDATE deliveries SET state = 'delivered', claim = NULL")
    assert await claims.leave_lanes(connection, [(held.lane, held.token)]) == 0
    assert world.sql(DUE, endpoint) == []


def waits(world: CallbacksWorld) -> bool:
    return bool(
        world.one(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'eventhub test' AND wait_event_type = 'Lock'"
        )
    )


async def test_lanes_without_a_row_are_found(world: CallbacksWorld) -> None:
    """A forwarder of the release before writes deliveries and knows no lanes by key."""
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        sent = world.events(5)
        world.deliver(sent, endpoint)
        world.sql("DELETE FROM lanes")
        async with draining(world):
            await until(lambda: world.count("delivered") == 5)
    assert sink.sequences() == sent.sequences


async def test_the_lanes_of_a_deleted_endpoint_end(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=True, order_by="@key")
        world.deliver(world.events(40), endpoint, lanes=range(-40, 0))
        world.sql("UPDATE endpoints SET enabled = false, deleted_at = now()")
        async with draining(world):
            await until(lambda: world.sql("SELECT count(*) FROM lanes") == [(0,)])
    assert world.count("cancelled") == 40
    assert sink.posted == []


async def test_a_lane_does_not_pass_an_event_that_is_being_fanned_out(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=True, order_by="@key")
        sent = world.events(4)
        world.deliver(sent, endpoint, lanes=[A] * 4)
        world.fan_out(sent, 2)
        async with draining(world):
            await until(lambda: world.count("delivered") == 2)
            world.sql("DELETE FROM fanouts")
            await until(lambda: world.count("delivered") == 4)
    assert sink.sequences() == [1, 2, 3, 4]


async def test_ten_thousand_lanes_cost_a_look_up(
    world: CallbacksWorld, connection: Connection
) -> None:
    """A scan reads one row of an endpoint, and a claim as many lanes as it takes."""
    endpoint = world.endpoint("http://127.0.0.1:9/", ordered=True, order_by="@key")
    sent = world.events(1)
    many = sent._replace(sequences=list(range(1, 10_001)))
    world.deliver(many, endpoint, lanes=[-each for each in many.sequences])
    world.sql("UPDATE lanes SET due_at = now() + interval '1 hour' WHERE stream_id < -20")
    world.sql("VACUUM lanes")
    assert set((await claims.scan_lanes(connection, 0)).due) == {endpoint}
    read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'lanes_due'"
    await connection.execute("SELECT pg_stat_force_next_flush()")
    before = world.one(read)
    taken = await claims.claim_lanes(connection, {endpoint: LaneCounts(10, 10, 1)})
    await claims.scan_lanes(connection, 0)
    assert len(taken) == 10
    await connection.execute("SELECT pg_stat_force_next_flush()")
    await until(lambda: world.one(read) > before)
    assert world.one(read) - before < 200
