"""Several events in one request: their form, their results, and their order."""

import asyncio
import json
import re
import time
from typing import Any

import pytest
from eventhub_client.callbacks import verify

from delivery.callbacks import claims
from delivery.callbacks.claimed_groups import claim_groups
from delivery.callbacks.results import (
    AttemptRecord,
    DeliveredBatch,
    DeliveryPart,
    write_delivered,
)
from eventhub.base import limits
from registrations.endpoints.secrets import secret_text
from tests.busy import stretched
from tests.integration.callbacks_world import (
    OK,
    SECRET,
    CallbacksWorld,
    Posted,
    answer,
    draining,
    receiver,
    until,
)

A, B = -1, -2  # lanes


def ids(posted: Posted) -> list[str]:
    return [each["id"] for each in json.loads(posted.body)["batch"]]


def numbers(posted: Posted) -> list[int]:
    return [int(id.split("_")[2]) for id in ids(posted)]


def results(*found: dict[str, Any]) -> bytes:
    return answer("200 OK", body=json.dumps({"results": found}).encode())


async def test_events_are_posted_together_and_each_has_its_id(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10)
        sent = world.events(25)
        world.deliver(sent, endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 25)
    assert sorted(len(ids(each)) for each in sink.posted) == [5, 10, 10]
    assert sorted(id for each in sink.posted for id in ids(each)) == sorted(
        f"msg_{sent.segment.replace('-', '')}_{n}_{endpoint}" for n in sent.sequences
    )
    for each in sink.posted:
        assert each.headers["webhook-id"].startswith("batch_")
        assert verify(secret_text(SECRET), each.headers, each.body)
        [first, *_] = json.loads(each.body)["batch"]
        assert first["registrations"] == [7]
        assert first["event"]["attributes"]["n"] == first["sequence"] - 1
    attempts = world.sql("SELECT sequences, number, status, request FROM attempts")
    assert sorted(n for row in attempts for n in row[0]) == sent.sequences
    assert [row[1:3] for row in attempts] == [(1, 204)] * 3  # one for each request
    assert {re.search("webhook-id: (.*)", row[3])[1] for row in attempts} == {
        each.headers["webhook-id"] for each in sink.posted
    }
    assert world.sql("SELECT DISTINCT attempts, claim, last_outcome, last_status"
                     " FROM deliveries") == [(1, None, None, 204)]  # fmt: skip


async def test_cloudevents_are_posted_as_an_array(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        for format in ("cloudevents_structured", "cloudevents_binary"):
            endpoint = world.endpoint(sink.url, format=format, batch_events_max=10)
            world.deliver(world.events(3), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 6)
    for each in sink.posted:
        assert each.headers["content-type"].startswith("application/cloudevents-batch+json")
        events = json.loads(each.body)
        assert [event["specversion"] for event in events] == ["1.0"] * 3
        assert all(event["eventhubdelivery"].startswith("msg_") for event in events)
        assert {event["eventhubmatched"] for event in events} == {"7"}
        assert [event["eventhubcursor"].split(":")[1] for event in events] == ["1", "2", "3"]


async def test_a_batch_is_bounded_in_bytes(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=100, batch_bytes_max=2_000)
        world.deliver(world.events(30), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 30)
    assert max(len(each.body) for each in sink.posted) < 2_020
    assert len(sink.posted) < 10


async def test_the_answer_may_refuse_single_events(world: CallbacksWorld) -> None:
    def partly(posted: Posted) -> bytes:
        if len(sink.posted) > 1:
            return OK
        first, second, *_ = ids(posted)
        return results({"id": first, "status": 500}, {"id": second, "status": 204})

    async with receiver(partly) as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10)
        world.deliver(world.events(5), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 5)
    assert [numbers(each) for each in sink.posted] == [[1, 2, 3, 4, 5], [1]]
    assert sorted(world.outcomes(endpoint)) == [
        *((1, "delivered", 200), (1, "status", 500), (2, "delivered", 204))
    ]
    assert world.sql("SELECT count(*) FROM circuits WHERE failures > 0") == [(0,)]


@pytest.mark.parametrize("wrong", ["cut", "late", "compressed"])
async def test_an_answer_that_cannot_be_read_acknowledges_nothing(
    world: CallbacksWorld, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may say that an event failed."""
    monkeypatch.setattr(limits, "CALLBACK_BODY_S_MAX", 0.2)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"

    async def unreadable(posted: Posted) -> bytes:
        if wrong == "compressed":
            return answer("200 OK", "content-encoding: gzip", body=b"\x1f\x8b")
        if wrong == "cut":
            sink.serving.pop().cancel()  # closes the connection
        return head

    async with receiver(unreadable) as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10)
        world.deliver(world.events(2), endpoint)
        async with draining(world):
            await until(lambda: len(world.outcomes(endpoint)) >= 2)
    assert {outcome for _, outcome, _ in world.outcomes(endpoint)} == {"protocol"}
    assert sink.posted[0].headers["accept-encoding"] == "identity"


async def test_an_event_that_is_gone_does_not_disable_the_endpoint(world: CallbacksWorld) -> None:
    def partly(posted: Posted) -> bytes:
        return results({"id": ids(posted)[0], "status": 410}) if len(sink.posted) == 1 else OK

    async with receiver(partly) as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10)
        world.deliver(world.events(3), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 3)
    assert world.outcomes(endpoint)[0] == (1, "status", 410)
    assert world.enabled(endpoint) == (True, None)


async def test_a_failed_request_is_repeated_in_smaller_batches_until_the_poison_is_alone(
    world: CallbacksWorld,
) -> None:
    def poisoned(posted: Posted) -> bytes:
        return answer("500 Oops") if 5 in numbers(posted) else OK

    async with receiver(poisoned) as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=8)
        world.deliver(world.events(8), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 7)
            await until(lambda: any(numbers(each) == [5] for each in sink.posted))
    assert world.states(endpoint)[4] == "pending"
    assert len(ids(sink.posted[0])) == 8


async def test_an_ordered_lane_is_posted_in_runs_and_repeats_from_the_failed_event(
    world: CallbacksWorld,
) -> None:
    """The receiver took 3 and 4, but they follow 2, so they are sent again after it."""

    def partly(posted: Posted) -> bytes:
        if len(sink.posted) > 1:
            return OK
        return results({"id": ids(posted)[1], "status": 503})

    async with receiver(partly) as sink:
        endpoint = world.endpoint(sink.url, ordered=True, batch_events_max=4)
        world.deliver(world.events(9), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 9)
    order = [number for each in sink.posted for number in numbers(each)]
    assert numbers(sink.posted[0]) == [1, 2, 3, 4]
    assert order[4] == 2
    assert order[4:] == [2, *range(3, 10)]
    attempts = world.sql("SELECT COALESCE(sequences, ARRAY[sequence]), outcome FROM attempts")
    assert len([n for row in attempts for n in row[0]]) == 10  # of 3 and 4 none is counted
    assert [row[0] for row in attempts if row[1] == "status"] == [[2]]


async def test_lanes_of_several_keys_share_a_batch(world: CallbacksWorld) -> None:
    def partly(posted: Posted) -> bytes:
        return results({"id": ids(posted)[0], "status": 503}) if len(sink.posted) == 1 else OK

    async with receiver(partly) as sink:
        endpoint = world.endpoint(sink.url, ordered=True, order_by="@key", batch_events_max=10)
        world.deliver(world.events(8), endpoint, lanes=[A, B] * 4)
        async with draining(world):
            await until(lambda: world.count("delivered") == 8)
    first = numbers(sink.posted[0])
    assert sorted(first) == list(range(1, 9))
    failed = first[0] % 2  # the lane that failed, of odd or even numbers
    again = [number for each in sink.posted[1:] for number in numbers(each)]
    assert again == [number for number in range(1, 9) if number % 2 == failed]


async def test_endpoints_share_the_bound_of_a_claim_in_whole_batches(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story: the first endpoint took it all, and the others were posted in small batches."""
    monkeypatch.setattr(limits, "BATCH_DELIVERIES_CLAIMED_MAX", 35)
    monkeypatch.setattr(limits, "CALLBACK_SCAN_INTERVAL_S", 600.0)
    sent = world.events(100)
    async with receiver() as sink:
        endpoints = [world.endpoint(sink.url, batch_events_max=10) for _ in range(3)]
        for endpoint in endpoints:
            world.deliver(sent, endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == 300)
    assert [len(ids(each)) for each in sink.posted] == [10] * 30


async def test_an_event_lingers_for_others_but_not_once_the_batch_is_full(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=5, batch_linger_ms=4_000)
        sent = world.events(7)
        async with draining(world):
            began_s = time.monotonic()
            world.deliver(sent._replace(sequences=[1, 2]), endpoint)
            await asyncio.sleep(0.3)
            assert sink.posted == []
            world.deliver(sent._replace(sequences=[3, 4, 5]), endpoint)
            await until(lambda: world.count("delivered") == 5)
            assert time.monotonic() - began_s < 3.9
            world.deliver(sent._replace(sequences=[6, 7]), endpoint)
            began_s = time.monotonic()
            await until(lambda: world.count("delivered") == 7)
            assert 3.8 < time.monotonic() - began_s < 4.0 + stretched(1.0)
    assert [numbers(each) for each in sink.posted] == [[1, 2, 3, 4, 5], [6, 7]]


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_failing_endpoint_gets_few_requests_however_many_events_are_in_them(
    world: CallbacksWorld, ordered: bool
) -> None:
    """A failed request is one failure: five of them begin the backoff, and a probe is one event."""
    async with receiver(lambda _: answer("500 Oops")) as sink:
        endpoint = world.endpoint(sink.url, ordered=ordered, batch_events_max=50)
        world.deliver(world.events(200), endpoint)
        async with draining(world):
            await until(lambda: bool(world.sql("SELECT 1 FROM circuits WHERE state = 'open'")), 40)
            sink.script = lambda _: OK
            await until(lambda: world.count("delivered") == 200, 40)
    failures = sum(each[1] == "status" for each in world.outcomes(endpoint))
    assert failures >= 5


async def test_attempts_of_a_batch_share_a_row_in_a_range_of_sequences(
    world: CallbacksWorld,
) -> None:
    """A delivery's attempt is found by its sequence: the row is in the same range."""
    span = limits.BATCH_ATTEMPT_SPAN
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10)
        sent = world.events(2 * span + 1)
        chosen = [1, 2, span - 1, span, span + 1, 2 * span]
        world.deliver(sent._replace(sequences=chosen), endpoint)
        async with draining(world):
            await until(lambda: world.count("delivered") == len(chosen))
    assert [numbers(each) for each in sink.posted] == [chosen]
    found = world.sql("SELECT sequence, sequences FROM attempts ORDER BY sequence")
    assert found == [(1, [1, 2, span - 1]), (span, [span, span + 1]), (2 * span, None)]


async def test_a_late_result_of_a_batch_is_written_where_the_claim_is_still_held(
    world: CallbacksWorld,
) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=10)
        sent = world.events(4)
        world.deliver(sent, endpoint)
        async with await claims.open_connection(world.url, "test") as connection:
            [claimed] = await claim_groups(connection, {endpoint: 9})
            assert sorted(claimed.sequences) == sent.sequences
            # others have freed two of them, and one was delivered since
            world.sql("UPDATE deliveries SET claim = NULL WHERE sequence = 1")
            world.sql("UPDATE deliveries SET claim = gen_random_uuid() WHERE sequence = 2")
            world.sql("UPDATE deliveries SET state = 'delivered' WHERE sequence = 3")
            attempt = AttemptRecord("delivered", 200, time.monotonic(), 1, sink.url, "", "")
            part = DeliveryPart(sent.partition_id, endpoint, sent.segment_id, claimed.token)
            late = DeliveredBatch(endpoint, {part: claimed.sequences}, attempt, {})
            assert await write_delivered(connection, [late], time.monotonic()) == 1
    assert world.states(endpoint) == ["pending", "pending", "delivered", "delivered"]
    assert world.sql("SELECT sequence, sequences, number FROM attempts") == [(4, None, 1)]
