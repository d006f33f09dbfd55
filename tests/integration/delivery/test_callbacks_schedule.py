"""The retry schedule over hours and days: what a receiver that is away loses and costs. Time is
driven: what is due next is made due now, and the hours count as passed.
"""

import asyncio

import pytest

from delivery.callbacks.circuits import SQL, exhaust_withheld
from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.postgresql.connections import connect
from eventhub.postgresql.rows import fetch_value
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
# until the next request may be made: when the pause of an open circuit is over, otherwise when a
# delivery is due
NEXT = """
    SELECT CASE WHEN count(*) > 0 THEN extract(
               epoch FROM greatest(COALESCE(max(c.retry_at), min(d.next_attempt_at)), now()) - now()
           )::float8 END
      FROM deliveries d
      LEFT JOIN circuits c ON c.endpoint_id = d.endpoint_id AND c.state <> 'closed'
     WHERE d.endpoint_id = %s AND d.state = 'pending'
       AND (NOT d.ordered OR d.sequence = (SELECT min(sequence) FROM deliveries o
                                            WHERE o.endpoint_id = d.endpoint_id
                                              AND o.stream_id = d.stream_id
                                              AND o.state = 'pending'))
"""
UNDER_WAY = """
    SELECT (SELECT count(*) FROM deliveries WHERE claim IS NOT NULL)
         + (SELECT count(*) FROM circuits WHERE state = 'half_open')
"""
# ends the pause of an open circuit; returns how long it would have lasted
SKIP_PAUSE = """
    WITH paused AS (
        SELECT endpoint_id, extract(epoch FROM retry_at - now())::float8 AS left FROM circuits
         WHERE state = 'open' AND retry_at > now() FOR UPDATE
    )
    UPDATE circuits c SET retry_at = now() FROM paused p WHERE c.endpoint_id = p.endpoint_id
    RETURNING p.left
"""


@pytest.fixture(autouse=True)
def frequent_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLBACK_SCAN_INTERVAL_S", 0.05)


async def pass_time_until(world: CallbacksWorld, endpoint: int, seconds: float) -> None:
    """Let simulated time pass while workers post, from one attempt to the next."""
    passed = 0.0
    async with asyncio.timeout(60):
        while passed < seconds:
            await until(lambda: world.one(UNDER_WAY) == 0)
            left = world.one(NEXT, endpoint)
            if left is None:
                return
            step = min(left + 0.001, seconds - passed)
            if left > 0:
                world.pass_time(step / 3_600)
                passed += step
            await asyncio.sleep(0.08)  # a scan: nothing can be waited for if none is due


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_receiver_that_is_away_for_26_hours_loses_nothing(
    world: CallbacksWorld, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_S_MAX", 2 * 3_600.0)  # fewer steps
    async with receiver(lambda _: FAILS) as sink:
        endpoint = world.endpoint(sink.url, ordered=ordered, retry_schedule=None)
        sent = world.events(20)
        world.deliver(sent, endpoint)
        async with draining(world):
            await until(lambda: len(sink.posted) >= 1)
            await pass_time_until(world, endpoint, 26 * 3_600)
            assert world.states(endpoint) == ["pending"] * 20
            failed = len(sink.posted)
            sink.script = lambda _: OK
            passed_s = 0
            while world.states(endpoint) != ["delivered"] * 20:
                await pass_time_until(world, endpoint, 600)
                passed_s += 600
            assert passed_s <= limits.CALLBACK_CIRCUIT_S_MAX + 1_200, (
                "a probe comes after its pause"
            )
    assert len(sink.posted) == failed + 20
    if ordered:
        assert sink.sequences()[failed:] == sent.sequences


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_receiver_that_is_away_for_good_gets_dead_letters(
    world: CallbacksWorld, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that the open circuit withheld, too: they end after the time of a schedule."""
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_S_MAX", 12 * 3_600.0)
    total_s = sum(limits.CALLBACK_RETRY_SCHEDULE_S)
    connection = await connect(world.url, name="test")
    async with connection, receiver(lambda _: FAILS) as sink:
        endpoint = world.endpoint(sink.url, ordered=ordered, retry_schedule=None)
        world.deliver(world.events(60), endpoint)
        async with draining(world):
            await until(lambda: len(sink.posted) >= 1)
            await pass_time_until(world, endpoint, 0.95 * total_s)
            assert (await exhaust_withheld(connection)).dead == 0
            assert world.states(endpoint).count("pending") >= 50
            await pass_time_until(world, endpoint, 0.8 * total_s)
        assert (await exhaust_withheld(connection)).dead > 40
    assert world.states(endpoint) == ["dead_lettered"] * 60
    assert len(sink.posted) < 60
    [(count, outcome)] = world.sql(
        "SELECT deliveries, reason FROM endpoint_losses WHERE endpoint_id = %s", endpoint
    )
    assert (count, outcome) == (60, "status")
    causes = world.sql(
        "SELECT last_outcome, attempts > 0, count(*)::int FROM deliveries WHERE endpoint_id = %s"
        " GROUP BY 1, 2 ORDER BY 1",
        endpoint,
    )
    assert [cause[:2] for cause in causes] == [("status", True), ("withheld", False)]
    assert causes[1][2] > 10


async def test_without_retries_a_withheld_delivery_waits_for_the_longest_pause(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of seconds ends none that was never attempted, and a longer one all of them."""
    monkeypatch.setattr(limits, "CALLBACK_CIRCUIT_S_MAX", 600.0)
    connection = await connect(world.url, name="test")
    async with connection, receiver(lambda _: FAILS) as sink:
        endpoint = world.endpoint(sink.url, retry_schedule=[])
        world.deliver(world.events(60), endpoint)
        async with draining(world):
            await until(lambda: world.one("SELECT count(*) FROM circuits WHERE state = 'open'"))
            assert (await exhaust_withheld(connection)).dead == 0
            assert world.states(endpoint).count("pending") >= 30
            await pass_time_until(world, endpoint, 3_600)
        assert (await exhaust_withheld(connection)).dead > 0
    assert world.states(endpoint) == ["dead_lettered"] * 60


async def test_a_circuit_that_closes_meanwhile_withholds_nothing(world: CallbacksWorld) -> None:
    """It was open when the endpoints that have failed for long were read."""
    connection = await connect(world.url, name="test")
    values = {
        "total_s": 600,
        "claim_s": limits.CALLBACK_CLAIM_S,
        "deliveries_max": limits.CALLBACK_EXHAUST_DELIVERIES_MAX,
    }
    async with connection, receiver(lambda _: FAILS) as sink:
        endpoint = world.endpoint(sink.url, retry_schedule=[])
        world.deliver(world.events(60), endpoint)
        async with draining(world):
            await until(lambda: world.one("SELECT count(*) FROM circuits WHERE state = 'open'"))
            await pass_time_until(world, endpoint, 3_600)
        left = world.states(endpoint).count("pending")
        world.sql("UPDATE circuits SET state = 'closed', failures = 0")
        values["endpoint"] = endpoint
        assert await fetch_value(connection, SQL["dead_letter_withheld"], values) == 0
        world.sql("UPDATE circuits SET state = 'open', failures = 5")
        assert await fetch_value(connection, SQL["dead_letter_withheld"], values) == left > 0


async def test_deliveries_of_a_disabled_endpoint_wait(world: CallbacksWorld) -> None:
    connection = await connect(world.url, name="test")
    async with connection:
        endpoint = world.endpoint("http://127.0.0.1:9/", retry_schedule=None)
        world.deliver(world.events(3), endpoint)
        world.open_circuit(endpoint, until="now() + interval '1 s'")
        world.pass_time(100)
        world.sql("UPDATE circuits SET failed_at = now()")
        world.sql("UPDATE endpoints SET enabled = false WHERE id = %s", endpoint)
        assert (await exhaust_withheld(connection)).dead == 0
        world.sql("UPDATE endpoints SET enabled = true, changed_at = now() WHERE id = %s", endpoint)
        assert (await exhaust_withheld(connection)).dead == 0
        world.sql("UPDATE endpoints SET changed_at = now() - interval '99 hours'")
        assert (await exhaust_withheld(connection)).dead == 3


async def test_100_000_pending_deliveries_cost_some_20_requests_in_the_first_hour(
    world: CallbacksWorld,
) -> None:
    """When the receiver is back, requests are made one at a time first, then two, then four."""
    sent = world.events(1)
    under_way = [0, 0]

    async def accepts(_: Posted) -> bytes:
        under_way[0] += 1
        under_way[1] = max(under_way)
        await asyncio.sleep(0.002)
        under_way[0] -= 1
        return OK

    async with receiver(lambda _: FAILS) as sink:
        endpoint = world.endpoint(sink.url, retry_schedule=None)
        world.deliver(sent, endpoint)
        world.sql(
            "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
            " registrations, payload) SELECT %s, %s, %s, n, %s, '{7}', %s"
            " FROM generate_series(2, 100000) AS n",
            *(sent.partition_id, endpoint, sent.segment_id, sent.stream_id),
            encode(Event("shop", "order.placed", {})),
        )
        async with draining(world), draining(world):
            await until(lambda: world.one("SELECT count(*) FROM circuits WHERE state = 'open'") > 0)
            passed = 0.0
            while passed < 3_600:
                await until(lambda: world.one(UNDER_WAY) == 0)
                passed += sum(left for (left,) in world.sql(SKIP_PAUSE))
                await asyncio.sleep(0.02)
            first_hour = len(sink.posted)
            assert 20 <= first_hour <= 40
            sink.script = accepts
            async with asyncio.timeout(40):
                while len(sink.posted) <= first_hour + 1_000:
                    world.sql(SKIP_PAUSE)  # of a probe that was under way
                    await asyncio.sleep(0.05)
        assert under_way[1] <= 2 * limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX
    tries = world.sql(
        "SELECT max(attempts), sum(attempts) FILTER (WHERE state <> 'delivered') FROM deliveries"
        " WHERE endpoint_id = %s", endpoint,
    )  # fmt: skip
    assert tries[0][0] <= 3
