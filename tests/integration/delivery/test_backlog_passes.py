"""The searches of the maintenance over all endpoints: each pass is bounded, and every endpoint gets
its turn.
"""

from collections.abc import AsyncIterator

import pytest

from delivery.callbacks.circuits import exhaust_withheld
from delivery.callbacks.operational_events import announce_circuits
from delivery.forward.backlog import SQL, Backlog, DeadLetterCount
from delivery.forward.bounds import BacklogSettings
from eventhub.base import limits, metrics
from eventhub.base.clock import ManualClock
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.postgresql.connections import Connection, connect
from tests.integration.callbacks_world import CallbacksWorld

URL = "http://127.0.0.1:9/"


@pytest.fixture
async def connection(world: CallbacksWorld) -> AsyncIterator[Connection]:
    async with await connect(world.url, name="test") as connection:
        await connection.execute(SQL["settings"])
        yield connection


def failing_for_long(world: CallbacksWorld, deliveries: list[int]) -> list[int]:
    """Create endpoints that have failed for longer than their schedule, each with so many pending
    deliveries; return their ids.
    """
    endpoints = []
    for count in deliveries:
        endpoints.append(world.endpoint(URL, retry_schedule=None))
        world.deliver(world.events(count), endpoints[-1])
        world.open_circuit(endpoints[-1])
    world.pass_time(100)
    world.sql("UPDATE circuits SET failed_at = now()")
    return endpoints


async def passes(connection: Connection) -> list[int]:
    """Return the dead letters of each pass of one search."""
    found, after = [], 0
    while True:
        done = await exhaust_withheld(connection, after)
        found.append(done.dead)
        if done.after is None:
            return found
        assert done.after > after
        after = done.after


async def test_a_pass_examines_a_bounded_number_of_failing_endpoints(
    world: CallbacksWorld, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLBACK_EXHAUST_ENDPOINTS_MAX", 3)
    failing_for_long(world, [2] * 7)
    assert await passes(connection) == [6, 6, 2]
    assert world.count("dead_lettered") == 14


async def test_a_pass_marks_a_bounded_number_of_deliveries_and_goes_on_with_the_next_endpoint(
    world: CallbacksWorld, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLBACK_EXHAUST_DELIVERIES_MAX", 2)
    monkeypatch.setattr(limits, "CALLBACK_EXHAUST_STATEMENTS_MAX", 2)
    large, *small = failing_for_long(world, [9, 1, 1])
    assert await passes(connection) == [4, 2]
    assert [world.states(each) for each in small] == [["dead_lettered"]] * 2
    assert await passes(connection) == [4, 0]
    assert await passes(connection) == [1]
    assert world.states(large) == ["dead_lettered"] * 9


async def test_the_maintenance_continues_a_search_at_its_next_check(
    world: CallbacksWorld, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search over many endpoints does not wait for a minute after each pass."""
    monkeypatch.setattr(limits, "CALLBACK_EXHAUST_ENDPOINTS_MAX", 3)
    monkeypatch.setattr(limits, "DEAD_LETTERS_COUNT_ENDPOINTS_MAX", 3)
    failing_for_long(world, [1] * 7)
    clock = ManualClock()
    backlog = Backlog(BacklogSettings(), clock)
    left = []
    for _ in range(4):
        await backlog.check(connection, StorageBudget(0))
        left.append(world.count("pending"))
        clock.advance_s(1.0)
    assert left == [4, 1, 0, 0]
    again = failing_for_long(world, [1])
    await backlog.check(connection, StorageBudget(0))
    assert world.states(again[0]) == ["pending"]
    clock.advance_s(limits.CALLBACK_EXHAUST_INTERVAL_S)
    await backlog.check(connection, StorageBudget(0))
    assert world.states(again[0]) == ["dead_lettered"]


async def test_dead_letters_are_counted_in_bounded_passes(
    world: CallbacksWorld, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DEAD_LETTERS_COUNT_ENDPOINTS_MAX", 3)
    monkeypatch.setattr(limits, "DEAD_LETTERS_COUNTED_MAX", 5)
    counts = [1, 2, 1, 5, 1, 9, 1, 1]
    endpoints = []
    for count in counts:
        endpoints.append(world.endpoint(URL))
        world.deliver(world.events(count), endpoints[-1])
    world.sql("UPDATE deliveries SET state = 'dead_lettered'")
    world.sql("UPDATE endpoints SET enabled = false WHERE id = ANY (%s)", endpoints[:2])
    world.sql("UPDATE endpoints SET deleted_at = now() WHERE id = ANY (%s)", endpoints[6:])
    world.open_circuit(endpoints[3])
    counting, passes = DeadLetterCount(), 1
    while not await counting.count(connection):
        passes += 1
    # [1, 2, 1], [5], [1, 9], [1, 1], and none: a pass ends with the endpoint that fills it
    assert passes == 5
    shown = {
        status: metrics.CALLBACK_DEAD.labels(status)._value.get()
        for status in metrics.ENDPOINT_STATUSES
    }
    # at most 5 of the 9 are counted
    assert shown == {"disabled": 3, "failing": 5, "healthy": 1 + 1 + 5}


async def test_circuits_that_switch_all_the_time_do_not_delay_the_announcements_of_others(
    world: CallbacksWorld, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOSSES_PER_CHECK_MAX", 3)
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_ANNOUNCE_S", 0.0)
    for _ in range(7):
        world.open_circuit(world.endpoint(URL))
    for _ in range(3):
        world.sql("UPDATE circuits SET openings = openings + 1")
        await announce_circuits(connection)
    announced = world.one("SELECT count(*) FROM circuits WHERE announced_open")
    assert announced == 7
