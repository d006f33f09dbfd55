"""Receivers are asked whether they agree to callbacks, by a worker."""

import asyncio
import json
import time
from collections.abc import Iterator

import psycopg
import pytest
from eventhub_client.callbacks import verify

from delivery.callbacks.claims import delete_leftovers
from eventhub.base import limits
from registrations.endpoints.secrets import secret_text
from registrations.endpoints.statements import (
    VerificationResult,
    end_verification,
    request_verification,
)
from tests.integration.callbacks_world import (
    OK,
    SECRET,
    CallbacksWorld,
    Posted,
    answer,
    callbacks_world,
    draining,
    receiver,
    until,
)

AGREES = answer("200 OK", "WebHook-Allowed-Origin: eventhub", "WebHook-Allowed-Rate: 120")


@pytest.fixture(scope="module")
def world() -> Iterator[CallbacksWorld]:
    with callbacks_world() as made:
        yield made


def unverified(world: CallbacksWorld, url: str, handshake: str) -> int:
    """Insert an endpoint as the API does, and request its verification."""
    endpoint = world.endpoint(url)
    world.sql(
        "UPDATE endpoints SET handshake = %s, enabled = false, reason = 'unverified' WHERE id = %s",
        handshake,
        endpoint,
    )
    request_verification(world.connection, endpoint)
    return endpoint


def result(world: CallbacksWorld, endpoint: int) -> tuple[str | None, int | None, str | None]:
    """Return the outcome, status and detail; the outcome is None while it is pending."""
    [found] = world.sql(
        "SELECT outcome, status, detail FROM endpoint_verifications WHERE endpoint_id = %s",
        endpoint,
    )
    return found[0], found[1], found[2]


async def ended(world: CallbacksWorld, endpoint: int) -> tuple[str | None, int | None, str | None]:
    await until(lambda: result(world, endpoint)[0] is not None)
    return result(world, endpoint)


async def test_a_receiver_of_cloudevents_agrees_in_the_handshake(world: CallbacksWorld) -> None:
    def script(posted: Posted) -> bytes:
        return AGREES if posted.method == "OPTIONS" else OK

    async with receiver(script) as sink:
        endpoint = unverified(world, sink.url, "cloudevents")
        world.deliver(world.events(1), endpoint)
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"])
        asked, posted = sink.posted
    assert (asked.method, asked.path, asked.body) == ("OPTIONS", "/hook", b"")
    assert asked.headers["webhook-request-origin"] == "eventhub"
    assert int(asked.headers["webhook-request-rate"]) > 0
    assert posted.headers["webhook-request-origin"] == "eventhub"
    assert result(world, endpoint) == ("verified", 200, "")
    assert world.enabled(endpoint) == (True, None)
    [(rate, verified)] = world.sql(
        "SELECT allowed_rate, verified_at IS NOT NULL FROM endpoints WHERE id = %s", endpoint
    )
    assert (rate, verified) == (120, True)


@pytest.mark.parametrize("as_json", [True, False])
async def test_a_receiver_agrees_by_echoing_a_signed_challenge(
    world: CallbacksWorld, as_json: bool
) -> None:
    def script(posted: Posted) -> bytes:
        content = json.loads(posted.body)
        if content.get("type") != "endpoint.challenge":
            return OK
        value = content["challenge"]
        return answer(
            "200 OK", body=(json.dumps({"challenge": value}) if as_json else value).encode()
        )

    async with receiver(script) as sink:
        endpoint = unverified(world, sink.url, "challenge")
        world.deliver(world.events(1), endpoint)
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"])
        asked, posted = sink.posted
    assert verify(secret_text(SECRET), asked.headers, asked.body).startswith("vrf_")
    assert "webhook-request-origin" not in posted.headers
    assert world.enabled(endpoint) == (True, None)


async def test_nothing_is_delivered_to_a_receiver_that_did_not_agree(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        endpoint = unverified(world, sink.url, "cloudevents")
        world.deliver(world.events(1), endpoint)
        async with draining(world):
            outcome, status, detail = await ended(world, endpoint)
            other = world.endpoint(sink.url)
            world.deliver(world.events(1), other)
            await until(lambda: world.states(other) == ["delivered"])
        assert [posted.method for posted in sink.posted] == ["OPTIONS", "POST"]
    assert (outcome, status) == ("refused", 204)
    assert "WebHook-Allowed-Origin" in (detail or "")
    assert world.states(endpoint) == ["pending"]
    assert world.enabled(endpoint) == (False, "unverified")


async def test_a_verification_can_be_repeated(world: CallbacksWorld) -> None:
    answers = [answer("503 Busy"), AGREES]
    async with receiver(lambda _: answers.pop(0)) as sink, draining(world):
        endpoint = unverified(world, sink.url, "cloudevents")
        assert (await ended(world, endpoint))[:2] == ("refused", 503)
        request_verification(world.connection, endpoint)
        assert (await ended(world, endpoint))[:2] == ("verified", 200)
    assert world.enabled(endpoint) == (True, None)


async def test_a_result_of_an_earlier_url_changes_nothing(world: CallbacksWorld) -> None:
    """The URL is changed while its receiver is asked: that at the new one has not agreed."""
    asked, replied = asyncio.Event(), asyncio.Event()

    async def agree_late(_: Posted) -> bytes:
        asked.set()
        await replied.wait()
        return AGREES

    async with receiver(agree_late) as first, receiver() as second, draining(world):
        endpoint = unverified(world, first.url, "cloudevents")
        await asked.wait()
        world.sql("UPDATE endpoints SET url = %s WHERE id = %s", second.url, endpoint)
        request_verification(world.connection, endpoint)
        replied.set()
        outcome, _, _ = await ended(world, endpoint)
        await until(lambda: bool(second.posted))
    assert outcome == "refused"
    assert world.enabled(endpoint) == (False, "unverified")


async def test_the_address_guard_is_asked_too(world: CallbacksWorld) -> None:
    async with receiver() as sink, draining(world, allow=()):
        endpoints = [unverified(world, sink.url, each) for each in ("cloudevents", "challenge")]
        outcomes = [(await ended(world, endpoint))[0] for endpoint in endpoints]
    assert outcomes == ["refused_address"] * 2
    assert sink.connections == 0


async def test_hanging_receivers_of_a_client_delay_no_other_client(world: CallbacksWorld) -> None:
    async def hang(_: Posted) -> bytes:
        await asyncio.sleep(60)
        return OK

    async with receiver(hang) as hanging, receiver(lambda _: AGREES) as sink, draining(world):
        slow = [unverified(world, hanging.url, "cloudevents") for _ in range(40)]
        await until(lambda: hanging.connections >= limits.VERIFICATIONS_PER_CLIENT_MAX)
        other = unverified(world, sink.url, "cloudevents")
        world.sql(
            "WITH made AS (INSERT INTO clients (zone_id, name, created_at)"
            " SELECT zone_id, 'other', now() FROM clients WHERE id = %s RETURNING id)"
            " UPDATE endpoints SET client_id = (SELECT id FROM made) WHERE id = %s",
            world.client_id,
            other,
        )
        request_verification(world.connection, other)
        began_s = time.monotonic()
        assert (await ended(world, other))[0] == "verified"
        assert time.monotonic() - began_s < limits.CALLBACK_TIMEOUT_S_MAX / 2
        assert hanging.connections == limits.VERIFICATIONS_PER_CLIENT_MAX
    world.sql("DELETE FROM endpoint_verifications WHERE endpoint_id = ANY(%s)", slow)


async def test_another_worker_takes_over_from_one_that_died(world: CallbacksWorld) -> None:
    async with receiver(lambda _: AGREES) as sink:
        endpoint = unverified(world, sink.url, "cloudevents")
        world.sql(
            "UPDATE endpoint_verifications SET claimed_until = now() - interval '1 s'"
            " WHERE endpoint_id = %s",
            endpoint,
        )
        async with draining(world):
            assert (await ended(world, endpoint))[0] == "verified"


async def test_a_worker_waits_for_a_change_of_the_endpoint_before_it_locks(
    world: CallbacksWorld,
) -> None:
    """The change and the worker locked two rows in opposite orders, and one of them failed."""
    endpoint = unverified(world, "https://hooks.example/", "cloudevents")
    async with await psycopg.AsyncConnection.connect(world.url, autocommit=True) as worker:
        with psycopg.connect(world.url) as change:
            change.execute("SELECT FROM endpoints WHERE id = %s FOR UPDATE", (endpoint,))
            ending = end_verification(worker, endpoint, 1, VerificationResult("verified", 200))
            task = asyncio.create_task(ending)
            waits = "SELECT pid FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
            await until(lambda: bool(world.sql(waits, worker.info.backend_pid)))
            change.execute("SET LOCAL lock_timeout = '1 s'")
            request_verification(change, endpoint)
        await task
    assert result(world, endpoint)[0] is None
    assert world.enabled(endpoint) == (False, "unverified")
    world.sql("DELETE FROM endpoint_verifications WHERE endpoint_id = %s", endpoint)


async def test_the_verification_of_a_deleted_endpoint_is_deleted(world: CallbacksWorld) -> None:
    ended, live = (unverified(world, f"https://{n}.example/", "cloudevents") for n in "ab")
    world.sql("UPDATE endpoints SET deleted_at = now() WHERE id = %s", ended)
    await delete_leftovers(world.url)
    left = world.sql(
        "SELECT endpoint_id FROM endpoint_verifications WHERE endpoint_id = ANY(%s)", [ended, live]
    )
    assert left == [(live,)]
    world.sql("DELETE FROM endpoint_verifications WHERE endpoint_id = %s", live)
