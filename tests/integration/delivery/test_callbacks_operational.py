"""What `system` gets of endpoints that fail, recover and are disabled. Time is driven."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from delivery.callbacks.operational_events import announce_circuits, disable_failing
from eventhub.base import limits
from eventhub.postgresql.connections import Connection, connect
from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    answer,
    draining,
    receiver,
    until,
)
from tests.integration.retention_world import announced

DAY_H = 24.0


@pytest.fixture
async def connection(world: CallbacksWorld) -> AsyncIterator[Connection]:
    connection = await connect(world.url, name="test")
    yield connection
    await connection.close()


@pytest.fixture
def endpoint(world: CallbacksWorld) -> Iterator[int]:
    world.sql("DELETE FROM circuits")
    yield world.endpoint("http://127.0.0.1:9/")


def about(world: CallbacksWorld, endpoint: int, change: str) -> list[dict[str, Any]]:
    found = announced(world.url, f"endpoint.{change}")
    return [each for each in found if each["endpoint"] == endpoint]


def fail_again(world: CallbacksWorld, hours: float) -> None:
    """Let time pass until the next failure."""
    world.pass_time(hours)
    world.sql("UPDATE circuits SET failed_at = now(), recorded_at = now()")


def close(world: CallbacksWorld) -> None:
    world.sql("UPDATE circuits SET state = 'closed', failures = 0")


async def test_a_circuit_is_announced_when_it_opens_and_closes(
    world: CallbacksWorld, connection: Connection
) -> None:
    async with receiver(lambda _: answer("503 Busy")) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        sent = world.events(20)
        world.deliver(sent, endpoint)
        state = "SELECT state FROM circuits WHERE endpoint_id = %s"
        await until(lambda: ("open",) in world.sql(state, endpoint))
        await announce_circuits(connection)
        [opened] = about(world, endpoint, "circuit_opened")
        sink.script = lambda _: OK
        await until(lambda: world.states(endpoint) == ["delivered"] * 20)
    assert opened.items() >= {
        "level": "warning", "zone": "default", "client": "shop", "outcome": "status", "status": 503,
        "openings": 1,
    }.items()  # fmt: skip
    assert opened["failures"] >= limits.CALLBACK_CIRCUIT_FAILURES
    assert opened["event"]["stream"] == sent.name
    assert opened["event"]["segment"] == sent.segment
    assert opened["event"]["sequence"] in sent.sequences
    assert opened["since"] < opened["next_probe_at"]
    await announce_circuits(connection)
    assert about(world, endpoint, "circuit_closed") == []  # a minute has not passed
    world.sql("UPDATE circuits SET announced_at = announced_at - interval '61 s'")
    await announce_circuits(connection)
    [closed] = about(world, endpoint, "circuit_closed")
    assert (closed["level"], closed["failures"], closed["outcome"]) == ("info", 0, "status")


async def test_a_circuit_that_opens_and_closes_all_the_time_is_announced_once_a_minute(
    world: CallbacksWorld, connection: Connection, endpoint: int
) -> None:
    world.open_circuit(endpoint)
    for _ in range(5):
        world.sql("UPDATE circuits SET state = 'open', failures = 5, openings = openings + 1")
        await announce_circuits(connection)
        close(world)
        await announce_circuits(connection)
    assert len(about(world, endpoint, "circuit_opened")) == 1
    assert about(world, endpoint, "circuit_closed") == []
    world.sql("UPDATE circuits SET announced_at = announced_at - interval '61 s'")
    await announce_circuits(connection)
    [closed] = about(world, endpoint, "circuit_closed")
    assert closed["openings"] == 4
    assert world.sql("SELECT openings, announced_open FROM circuits") == [(0, False)]
    world.sql("UPDATE circuits SET announced_at = announced_at - interval '61 s'")
    await announce_circuits(connection)
    assert world.sql("SELECT count(*) FROM circuits") == [(0,)]


async def test_an_endpoint_is_announced_as_failing_three_times_and_then_disabled(
    world: CallbacksWorld, connection: Connection, endpoint: int
) -> None:
    world.open_circuit(endpoint)
    percents = []
    for _ in range(11):
        fail_again(world, DAY_H / 2)
        await disable_failing(connection)
        await announce_circuits(connection)
        percents.append([each["percent"] for each in about(world, endpoint, "failing")])
    assert percents[3] == []  # two days
    assert percents[4] == [50]  # two and a half
    assert percents[6] == [50, 70]
    assert percents[8] == [50, 70, 90]
    assert percents[-1] == [50, 70, 90]
    assert world.enabled(endpoint) == (False, "failing")
    [disabled] = about(world, endpoint, "disabled")
    assert (disabled["reason"], disabled["outcome"], disabled["level"]) == (
        "failing", "status", "warning",
    )  # fmt: skip
    assert disabled["event"]["sequence"] == 1
    assert about(world, endpoint, "changed")[-1]["enabled"] is False
    assert about(world, endpoint, "recovered") == []


async def test_an_endpoint_that_was_announced_as_failing_is_announced_as_recovered(
    world: CallbacksWorld, connection: Connection, endpoint: int
) -> None:
    world.open_circuit(endpoint)
    fail_again(world, 3 * DAY_H)
    await announce_circuits(connection)
    close(world)
    await announce_circuits(connection)
    [recovered] = about(world, endpoint, "recovered")
    assert (recovered["level"], recovered["failures"]) == ("info", 0)
    await announce_circuits(connection)
    assert len(about(world, endpoint, "recovered")) == 1


async def test_time_without_attempts_does_not_disable_an_endpoint(
    world: CallbacksWorld, connection: Connection, endpoint: int
) -> None:
    world.open_circuit(endpoint)
    world.pass_time(30 * DAY_H)
    assert await disable_failing(connection) == 0
    assert world.enabled(endpoint) == (True, None)


@pytest.mark.parametrize(("after_s", "enabled"), [(0, True), (3_600, False), (None, True)])
async def test_an_endpoint_has_a_time_of_its_own_until_it_is_disabled(
    world: CallbacksWorld, connection: Connection, endpoint: int, after_s: int, enabled: bool
) -> None:
    world.sql("UPDATE endpoints SET disable_after_s = %s WHERE id = %s", after_s, endpoint)
    world.open_circuit(endpoint)
    fail_again(world, 2)
    await disable_failing(connection)
    assert world.enabled(endpoint)[0] is enabled


async def test_an_endpoint_that_is_enabled_again_is_probed_and_gets_everything(
    world: CallbacksWorld, connection: Connection
) -> None:
    """And its time starts again: one more failure does not disable it."""
    async with receiver(lambda _: answer("500 Oops")) as sink:
        endpoint = world.endpoint(sink.url, retry_schedule=[3_600])
        world.deliver(world.events(10), endpoint)
        async with draining(world):
            state = "SELECT state FROM circuits WHERE endpoint_id = %s"
            await until(lambda: ("open",) in world.sql(state, endpoint))
        fail_again(world, 6 * DAY_H)
        assert await disable_failing(connection) == 1
        seen = len(sink.posted)
        async with draining(world):
            enable = "UPDATE endpoints SET enabled = true, reason = NULL, changed_at = now()"
            world.sql(enable)
            await until(lambda: len(sink.posted) > seen)
            assert await disable_failing(connection) == 0
            sink.script = lambda _: OK
            world.sql("UPDATE endpoints SET changed_at = now()")
            await until(lambda: "pending" not in world.states(endpoint))
        assert world.states(endpoint).count("delivered") >= 4


async def test_an_endpoint_that_is_gone_is_announced_as_disabled(world: CallbacksWorld) -> None:
    async with receiver(lambda _: answer("410 Gone")) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.enabled(endpoint) == (False, "gone"))
    [disabled] = about(world, endpoint, "disabled")
    assert (disabled["reason"], disabled["status"]) == ("gone", 410)
