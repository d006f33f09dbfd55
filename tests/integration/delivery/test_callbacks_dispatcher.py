"""The drain with a real database and real receivers: claims, requests, results."""

import asyncio
import json
import time
from typing import Any

import pytest
from cloudevents.v1.http import from_http
from standardwebhooks import Webhook

from delivery.callbacks import claims
from delivery.callbacks.results import AttemptRecord, DeliveryResult, write_results
from delivery.callbacks.retry import RetryDecision
from eventhub.base import limits
from registrations.endpoints.secrets import secret_text
from tests.integration.callbacks_world import (
    OK,
    QUICKLY,
    SECRET,
    CallbacksWorld,
    Posted,
    answer,
    claim_parallel,
    draining,
    receiver,
    until,
)


async def test_due_deliveries_are_posted_signed_and_recorded(world: CallbacksWorld) -> None:
    sent = world.events(3)
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(sent, endpoint, registrations=(7, 9))
        await until(lambda: world.states(endpoint) == ["delivered"] * 3)
    assert sorted(sink.sequences()) == sent.sequences
    for posted in sink.posted:
        Webhook(secret_text(SECRET)).verify(posted.body, posted.headers)
        found = json.loads(posted.body)
        sequence = found["sequence"]
        assert posted.headers["webhook-id"] == (
            f"msg_{sent.segment.replace('-', '')}_{sequence}_{endpoint}"
        )
        assert posted.headers["content-type"] == "application/json"
        assert list(found) == [
            *("stream", "segment", "sequence", "appended_at", "registrations", "event")
        ]
        assert (found["stream"], found["segment"]) == (sent.name, sent.segment)
        assert found["registrations"] == [7, 9]
        assert found["event"]["attributes"] == {"n": sequence - 1}
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 3


async def test_an_address_allowed_for_one_zone_is_not_called_for_another(
    world: CallbacksWorld,
) -> None:
    """Nor over the connection that a callback of the first zone has left open."""
    other_zone = world.one("INSERT INTO zones (name) VALUES ('neighbour') RETURNING id")
    sent = world.events(1)
    async with receiver() as sink, draining(world, allow=("default=127.0.0.0/8",)):
        own, other = world.endpoint(sink.url), world.endpoint(sink.url)
        world.sql("UPDATE endpoints SET zone_id = %s WHERE id = %s", other_zone, other)
        world.deliver(sent, own)
        await until(lambda: world.states(own) == ["delivered"])
        world.deliver(sent, other)
        await until(lambda: bool(world.outcomes(other)))
    assert world.outcomes(other) == [(1, "refused_address", None)]
    [reason] = world.sql("SELECT response FROM attempts WHERE endpoint_id = %s", other)[0]
    assert "EVENTHUB_CALLBACK_ALLOW does not allow for the zone neighbour" in reason
    assert sink.connections == 1


async def test_a_failed_delivery_is_retried_with_the_same_id(world: CallbacksWorld) -> None:
    answers = iter([answer("500 Oops", body=b"why\0 not"), answer("302 Found", "location: /x")])
    ok = answer("200 OK")
    async with receiver(lambda _: next(answers, ok)) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"])
    assert len(sink.posted) == 3
    assert len(set(sink.ids())) == 1
    assert [posted.path for posted in sink.posted] == ["/hook"] * 3
    assert world.outcomes(endpoint) == [
        (1, "status", 500),
        (2, "redirect", 302),
        (3, "delivered", 200),
    ]
    [first] = world.sql("SELECT response FROM attempts WHERE number = 1")[0]
    assert first.startswith("500 Oops\ncontent-length: 8")
    assert first.endswith("\n\nwhy� not")


def _sequence(posted: Posted) -> int:
    return int(posted.headers["webhook-id"].split("_")[2])


async def test_a_backlog_is_claimed_ahead_of_the_requests_under_way(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits behind slow requests, or behind one that fails, is claimed again, posted once."""
    monkeypatch.setattr(limits, "CALLBACK_SLOW_S", 0.5)
    monkeypatch.setattr(limits, "CALLBACK_PER_SLOT_S", 60.0)  # however slow the machine is
    sent = world.events(1_500)
    hangs, goes_on = asyncio.Event(), asyncio.Event()
    under_way, most, failed = 0, 0, list[int]()

    async def answers(posted: Posted) -> bytes:
        nonlocal under_way, most
        under_way, most = under_way + 1, max(most, under_way + 1)
        if len(sink.posted) == 300:
            failed.append(_sequence(posted))
        elif len(sink.posted) > 600 and not goes_on.is_set():
            hangs.set()
            await goes_on.wait()
            await asyncio.sleep(limits.CALLBACK_SLOW_S)
        under_way -= 1
        return answer("500 Oops") if _sequence(posted) in failed else OK

    async with receiver(answers) as sink, draining(world):
        endpoint = world.endpoint(sink.url, retry_schedule=[3600])
        world.deliver(sent, endpoint)
        await until(hangs.is_set)
        await until(lambda: under_way == limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX)
        settled = 600 - 1  # all before those that hang, but for the one that failed
        await until(lambda: world.states(endpoint).count("delivered") >= settled)
        ahead = world.one("SELECT count(*) FROM deliveries WHERE claim IS NOT NULL") - under_way
        goes_on.set()
        await until(lambda: world.states(endpoint).count("delivered") == 1_499)
    assert ahead > limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX
    assert most == limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX
    assert sorted(sink.sequences()) == sent.sequences
    [pending] = world.sql("SELECT sequence, attempts FROM deliveries WHERE state = 'pending'")
    assert pending == (*failed, 1)


async def test_an_ordered_lane_keeps_its_order_across_retries(world: CallbacksWorld) -> None:
    tries: dict[str, int] = {}

    def flaky(posted: Posted) -> bytes:
        found = posted.headers["webhook-id"]
        tries[found] = tries.get(found, 0) + 1
        return answer("200 OK" if tries[found] > int(found.split("_")[2]) % 3 else "503 Busy")

    async with receiver(flaky) as sink, draining(world), draining(world):
        endpoint = world.endpoint(sink.url, ordered=True)
        sent = world.events(12)
        world.deliver(sent, endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"] * 12, 60)
    assert sink.sequences() == [n for n in sent.sequences for _ in range(n % 3 + 1)]


async def test_a_lane_with_a_backlog_continues_as_soon_as_it_is_free(world: CallbacksWorld) -> None:
    """The story: the next scan came a second later, so a lane of thousands was drained at one claim
    a second.
    """
    claim = limits.CALLBACK_LANE_DELIVERIES_MAX
    sent = world.events(5 * claim)
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        world.deliver(sent, endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 5 * claim, 60)
    assert sink.sequences() == sent.sequences
    starts = range(claim, 5 * claim, claim)
    waits = sorted(sink.posted[n].at_s - sink.posted[n - 1].at_s for n in starts)
    assert waits[1] < limits.CALLBACK_SCAN_INTERVAL_S / 2


@pytest.mark.parametrize("fields", [{}, {"ordered": True, "order_by": "@key"},
                                    {"batch_events_max": 2}])  # fmt: skip
async def test_a_backlog_continues_although_another_endpoint_has_no_more(
    world: CallbacksWorld, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story: less was claimed than requested, so the next claim waited for the next scan."""
    monkeypatch.setattr(limits, "CALLBACK_SCAN_INTERVAL_S", 600.0)
    sent = world.events(60)
    lanes = [-n for n in sent.sequences] if fields.get("ordered") else []
    async with receiver() as sink:
        few, many = (world.endpoint(sink.url, **fields) for _ in range(2))
        world.deliver(sent._replace(sequences=[1]), few, lanes=lanes[:1])
        world.deliver(sent, many, lanes=lanes)
        async with draining(world):
            await until(lambda: world.count("delivered") == 61)
    assert len(sink.posted) in (61, 31)


async def test_two_drains_share_parallel_deliveries_without_posting_any_twice(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink, receiver() as other, draining(world), draining(world):
        endpoints = [world.endpoint(url) for url in (sink.url, other.url) for _ in range(4)]
        sent = world.events(100)
        for endpoint in endpoints:
            world.deliver(sent, endpoint)
        await until(lambda: world.count("delivered") == 800, 60)
    assert len(set(sink.ids())) == len(sink.posted) == 400
    assert len(set(other.ids())) == len(other.posted) == 400


async def test_gone_disables_the_endpoint_and_its_deliveries_stay_pending(
    world: CallbacksWorld,
) -> None:
    async with receiver(lambda _: answer("410 Gone")) as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        world.deliver(world.events(5), endpoint)
        async with draining(world):
            await until(lambda: world.enabled(endpoint) == (False, "gone"))
        seen = len(sink.posted)
        assert world.states(endpoint) == ["pending"] * 5
        world.sql("UPDATE deliveries SET next_attempt_at = now()")
        sink.script = lambda _: answer("200 OK")
        async with draining(world):
            other = world.endpoint(sink.url.replace("hook", "other"))
            world.deliver(world.events(1), other)
            await until(lambda: world.states(other) == ["delivered"])
            assert [p.path for p in sink.posted[seen:]] == ["/other"]
            world.sql("UPDATE endpoints SET enabled = true, reason = NULL WHERE id = %s", endpoint)
            await until(lambda: world.states(endpoint) == ["delivered"] * 5)
    assert world.outcomes(endpoint)[0] == (1, "status", 410)


async def test_a_deleted_endpoints_deliveries_are_cancelled(world: CallbacksWorld) -> None:
    async with receiver() as sink, draining(world):
        endpoints = [world.endpoint(sink.url, ordered=ordered) for ordered in (False, True)]
        world.sql("UPDATE endpoints SET enabled = false, deleted_at = now()")
        for endpoint in endpoints:
            world.deliver(world.events(3), endpoint)
        await until(lambda: world.count("cancelled") == 6)
    assert sink.posted == []


async def test_retry_after_is_obeyed(world: CallbacksWorld) -> None:
    async with receiver(lambda _: answer("429 Slow Down", "Retry-After: 1200")) as sink:
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(1), endpoint)
        async with draining(world):
            await until(lambda: len(world.outcomes(endpoint)) == 1)
    [(seconds,)] = world.sql("SELECT extract(epoch FROM next_attempt_at - now()) FROM deliveries")
    assert 1100 < seconds <= 1200


async def test_a_delivery_is_dead_lettered_after_its_last_attempt(world: CallbacksWorld) -> None:
    async with receiver(lambda _: answer("500 Oops")) as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        world.deliver(world.events(2), endpoint)
        world.sql("UPDATE deliveries SET attempts = %s", len(QUICKLY))
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["dead_lettered"] * 2)
    assert len(sink.posted) == 2  # a dead letter does not hold its lane


async def test_an_expired_claim_is_replaced_and_its_late_result_is_not_written(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(1), endpoint)
        connection = await claims.open_connection(world.url, "test")
        async with connection:
            [late] = await claim_parallel(connection, {endpoint: 9})
            assert await claim_parallel(connection, {endpoint: 9}) == []
            world.sql("UPDATE deliveries SET next_attempt_at = now()")  # the claim has expired
            async with draining(world):
                await until(lambda: world.states(endpoint) == ["delivered"])
            attempt = AttemptRecord("status", 500, time.monotonic(), 1, sink.url, "", "")
            result = DeliveryResult(late, RetryDecision("pending", 5.0), attempt)
            assert (await write_results(connection, [result], time.monotonic())).results == 0
    assert world.states(endpoint) == ["delivered"]
    assert world.outcomes(endpoint) == [(1, "delivered", 204)]


async def test_an_ordered_lane_waits_for_a_fan_out_that_is_not_written_yet(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink, draining(world) as drain:
        endpoint = world.endpoint(sink.url, ordered=True)
        sent = world.events(6)
        world.fan_out(sent, sent.sequences[3])
        world.deliver(sent._replace(sequences=[1, 2, 3, 5, 6]), endpoint)
        drain.wake()
        await until(lambda: len(sink.posted) == 3)
        world.deliver(sent._replace(sequences=[4]), endpoint)
        world.sql("DELETE FROM fanouts")
        await until(lambda: world.states(endpoint) == ["delivered"] * 6)
    assert sink.sequences() == [1, 2, 3, 4, 5, 6]


async def test_results_are_written_without_a_partition_for_attempts(world: CallbacksWorld) -> None:
    for name, *_ in world.sql("SELECT inhrelid::regclass::text FROM pg_inherits"
                              " WHERE inhparent = 'attempts'::regclass"):  # fmt: skip
        world.sql(f"DROP TABLE {name}")
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(2), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"] * 2)


async def test_the_drain_survives_the_loss_of_its_connections(world: CallbacksWorld) -> None:
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        sent = world.events(5)
        for _ in range(5):
            world.deliver(sent, endpoint)
            world.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            world.sql("UPDATE deliveries SET next_attempt_at = now() WHERE state = 'pending'")
            await until(lambda: set(world.states(endpoint)) == {"delivered"}, 60)
            sent = world.events(5, stream_id=sent.stream_id)
    assert len(set(sink.ids())) == 25


@pytest.mark.parametrize("format", ["cloudevents_structured", "cloudevents_binary"])
async def test_a_callback_is_a_cloudevent_if_the_endpoint_requests_it(
    world: CallbacksWorld, format: str
) -> None:
    """The CloudEvents package reads it; the signature covers the bytes sent."""
    sent = world.events(2, body=b'{"total":12}', content_type="application/json")
    async with receiver() as sink, draining(world):
        native, cloud = world.endpoint(sink.url), world.endpoint(sink.url, format=format)
        for endpoint in (native, cloud):
            world.deliver(sent, endpoint, registrations=(7, 9))
        await until(lambda: world.states(cloud) == world.states(native) == ["delivered"] * 2)
    posts = [each for each in sink.posted if each.headers["webhook-id"].endswith(f"_{cloud}")]
    for posted in posts:
        Webhook(secret_text(SECRET)).verify(posted.body, posted.headers)
        event = from_http(posted.headers, posted.body)
        cursor = posted.headers["eventhub-cursor"]
        assert (event["id"], event["type"], event["domain"]) == (cursor, "order.placed", "shop")
        assert event.data == {"total": 12}
        assert posted.headers["eventhub-stream"] == sent.name
        assert posted.headers["eventhub-registrations"] == "7,9"
        binary = posted.headers["content-type"] == "application/json"
        assert binary == (format == "cloudevents_binary")
    assert {each.headers["eventhub-cursor"] for each in posts} == {
        f"{sent.segment}:{sequence}" for sequence in sent.sequences
    }


async def test_a_cloudevent_without_a_body_has_a_content_type(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url, format="cloudevents_binary")
        world.deliver(world.events(1), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"])
    [posted] = sink.posted
    assert posted.headers["content-type"] == "application/cloudevents+json"
    assert from_http(posted.headers, posted.body)["n"] == 0


@pytest.mark.parametrize("format", ["native", "cloudevents_structured", "cloudevents_binary"])
async def test_a_removed_event_is_reported_as_a_gap(world: CallbacksWorld, format: str) -> None:
    """Its delivery is attempted like any other, with its own id."""
    sent = world.events(3)
    world.sql("SELECT count(*) FROM roll_segments(ARRAY[%s]::bigint[], false)", sent.stream_id)
    [[current]] = world.sql("SELECT segment::text FROM heads WHERE stream_id = %s", sent.stream_id)
    world.sql(
        "UPDATE segments SET tier = 'dropped', removal_reason = 'quota' WHERE uuid = %s",
        sent.segment,
    )
    world.sql(
        "DELETE FROM events WHERE partition_id = %s AND segment_id = %s",
        sent.partition_id,
        sent.segment_id,
    )
    answers = iter([answer("500 Oops")])
    async with receiver(lambda _: next(answers, OK)) as sink, draining(world):
        endpoint = world.endpoint(sink.url, ordered=True, format=format)
        world.deliver(sent, endpoint, registrations=(7,))
        await until(lambda: world.states(endpoint) == ["delivered"] * 3)
    assert sink.sequences() == [1, 1, 2, 3]
    for posted in sink.posted:
        sequence = int(posted.headers["webhook-id"].split("_")[2])
        resume = {"segment": current, "sequence": 3}
        gap = {"first": sequence, "last": sequence, "resume": resume, "why": "quota"}
        body = json.loads(posted.body)
        if format == "native":
            assert body == {"stream": sent.name, "gap": gap, "registrations": [7]}
            continue
        event = from_http(posted.headers, posted.body)
        assert event["type"] == "delivery.gap"
        assert event.data == {"stream": sent.name, "gap": gap}
