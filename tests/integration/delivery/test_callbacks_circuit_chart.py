"""The statements and the documentation of circuit breakers follow the state chart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from delivery.callbacks import claims
from delivery.callbacks.circuits import record_results, return_probes, take_probes
from delivery.callbacks.claims import Claimed, FailureState
from delivery.callbacks.failures import EndpointFailures
from delivery.callbacks.results import AttemptRecord, DeliveryResult
from delivery.callbacks.retry import RetryDecision
from eventhub.base import limits
from eventhub.postgresql.connections import Connection
from registrations.endpoints.circuit import CHART, CircuitEvent, CircuitState, Transition
from tests.integration.callbacks_world import CallbacksWorld

DOCUMENT = Path(__file__).parents[3] / "docs" / "callbacks.md"
URL = "http://127.0.0.1:9/"


@pytest.fixture
async def connection(world: CallbacksWorld) -> AsyncIterator[Connection]:
    connection = await claims.open_connection(world.url, "test")
    yield connection
    await connection.close()


def result(endpoint: int, outcome: str, *, probe: bool = False) -> DeliveryResult:
    claimed = Claimed(
        *(1, endpoint, 1, 1, 1, 1, [7], 0, 0, False, 0, None, None, None, None, False, "", probe)
    )
    attempt = AttemptRecord(outcome, None, 0.0, 1, URL, "", "")
    return DeliveryResult(claimed, RetryDecision("pending", 5.0), attempt)


async def record(
    connection: Connection, endpoint: int, outcome: str, count: int = 1, *, probe: bool = False
) -> None:
    failures = EndpointFailures()
    failures.record_scan({endpoint: FailureState(1, True)})
    results = [result(endpoint, outcome, probe=probe)] * count
    await record_results(connection, results, failures)


async def reach(
    world: CallbacksWorld, connection: Connection, endpoint: int, state: CircuitState
) -> None:
    """Bring the endpoint's circuit into a state, one failure away from the next."""
    last = limits.CALLBACK_CIRCUIT_FAILURES
    await record(connection, endpoint, "status", last - 1 if state == "closed" else last)
    if state == "half_open":
        await cause(world, connection, endpoint, "pause_over")


async def cause(
    world: CallbacksWorld, connection: Connection, endpoint: int, event: CircuitEvent
) -> None:
    over = "UPDATE circuits SET retry_at = now() WHERE endpoint_id = %s"
    match event:
        case "success":
            await record(connection, endpoint, "delivered")
        case "failure":
            world.sql("UPDATE circuits SET failures = 1 WHERE endpoint_id = %s", endpoint)
            await record(connection, endpoint, "timeout")
        case "last_failure":
            await record(connection, endpoint, "timeout")
        case "pause_over" | "probe_lost":
            world.sql(over, endpoint)
            assert await take_probes(connection, [endpoint]) == {endpoint: False}
        case "endpoint_changed":
            world.sql("UPDATE circuits SET retry_at = now() + interval '1 s', pause_s = 9")
            world.sql("UPDATE endpoints SET changed_at = now() WHERE id = %s", endpoint)
            assert await take_probes(connection, [endpoint]) == {endpoint: True}
        case "probe_failed":
            await record(connection, endpoint, "status", probe=True)
        case "probe_returned":
            await return_probes(connection, [endpoint])


def state(world: CallbacksWorld, endpoint: int) -> str:
    found: str = world.one("SELECT state FROM circuits WHERE endpoint_id = %s", endpoint)
    return found


@pytest.mark.parametrize("transition", CHART, ids=lambda each: f"{each.state}-{each.event}")
async def test_the_statements_follow_the_chart(
    world: CallbacksWorld, connection: Connection, transition: Transition
) -> None:
    endpoint = world.endpoint(URL)
    await reach(world, connection, endpoint, transition.state)
    assert state(world, endpoint) == transition.state
    await cause(world, connection, endpoint, transition.event)
    assert state(world, endpoint) == transition.next


@pytest.mark.parametrize("transition", CHART, ids=lambda each: f"{each.state}-{each.event}")
def test_the_documentation_has_the_chart(transition: Transition) -> None:
    row = "| `{}` | `{}` | `{}` | {} |".format(*transition)
    assert row in DOCUMENT.read_text()


async def test_one_of_two_workers_gets_the_probe(
    world: CallbacksWorld, connection: Connection
) -> None:
    other = await claims.open_connection(world.url, "other")
    async with other:
        for _ in range(10):
            endpoint = world.endpoint(URL)
            await reach(world, connection, endpoint, "open")
            world.sql("UPDATE circuits SET retry_at = now() WHERE endpoint_id = %s", endpoint)
            both = (connection, other)
            taken = await asyncio.gather(*(take_probes(each, [endpoint]) for each in both))
            assert sorted(map(len, taken)) == [0, 1]


async def test_a_pause_doubles_with_each_failed_probe_up_to_five_minutes(
    world: CallbacksWorld, connection: Connection
) -> None:
    endpoint = world.endpoint(URL)
    await reach(world, connection, endpoint, "open")
    pauses = []
    for _ in range(10):
        [(pause_s, left)] = world.sql(
            "SELECT pause_s, extract(epoch FROM retry_at - recorded_at)::float8 FROM circuits"
            " WHERE endpoint_id = %s", endpoint,
        )  # fmt: skip
        assert pause_s / 2 <= left <= pause_s
        pauses.append(pause_s)
        await cause(world, connection, endpoint, "pause_over")
        await cause(world, connection, endpoint, "probe_failed")
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


async def test_a_429_with_a_retry_after_opens_the_circuit_at_once(
    world: CallbacksWorld, connection: Connection
) -> None:
    endpoint = world.endpoint(URL)
    throttled = result(endpoint, "status")
    assert throttled.attempt is not None
    throttled = throttled._replace(
        attempt=throttled.attempt._replace(status=429),
        decision=RetryDecision("pending", 120.0, retry_after_s=120),
    )
    await record_results(connection, [throttled], EndpointFailures())
    [(found, left)] = world.sql(
        "SELECT state, extract(epoch FROM retry_at - now())::float8 FROM circuits"
        " WHERE endpoint_id = %s", endpoint,
    )  # fmt: skip
    assert found == "open"
    assert 115 < left <= 120
