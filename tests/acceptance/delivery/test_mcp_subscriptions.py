"""Subscriptions of MCP Events by webhook, with the official client and a receiver."""

import asyncio
import base64
import json
import secrets
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from eventhub.base import limits
from registrations.endpoints.expiry import delete_expired
from tests.acceptance.delivery.test_mcp import NAME, order, poll, post, shop, totals
from tests.acceptance.matched_streams import samples
from tests.acceptance.mcp import connected, refused
from tests.acceptance.wire import until
from tests.live import LiveHub, LiveZone
from tests.sink import Called, Sink

if TYPE_CHECKING:
    from tests.acceptance.mcp_client import McpClient


def new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


SECRET = new_secret()
ARGUMENTS = {"stream": "orders", "filter": "(> total 1)"}


def agree(called: Called) -> bytes:
    """Return the body that echoes a challenge, of any other request none."""
    if called.json.get("type") != "verification":
        return b""
    return json.dumps({"challenge": called.json["challenge"]}).encode()


def answer_ok(called: Called) -> tuple[int, dict[str, str]]:
    return 200, {}


@pytest.fixture
def receiver(sink: Sink) -> Sink:
    """Return a receiver that agrees to subscriptions."""
    sink.answer, sink.body = answer_ok, agree
    return sink


async def subscribe(mcp: "McpClient", sink: Sink, **more: Any) -> dict[str, Any]:
    given = {"name": NAME, "arguments": ARGUMENTS, **more}
    delivery = {"mode": "webhook", "url": sink.url(), "secret": given.pop("secret", SECRET)}
    return await mcp.ask("events/subscribe", **given, delivery=delivery)


def occurrences(sink: Sink) -> list[Called]:
    return [called for called in sink.at("/") if "eventId" in called.json]


def endpoints(hub: LiveHub, zone: LiveZone) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hub.call("GET", "/v1/endpoints", key=zone.admin).json["items"]
    return found


async def test_a_receiver_agrees_and_gets_signed_occurrences(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    order(zone, 9)
    async with connected(hub, zone.key("listen:orders")) as mcp:
        made = await subscribe(mcp, receiver)
        [challenge] = receiver.at("/")
        assert challenge.verified(SECRET)
        assert challenge.id.startswith("msg_verification_")
        assert challenge.headers["x-mcp-subscription-id"] == made["id"]
        soon = datetime.now(UTC) + timedelta(hours=23)
        assert datetime.fromisoformat(made["refreshBefore"]) > soon
        assert made["truncated"] is False
        other = await subscribe(mcp, receiver, arguments={"stream": "orders"})
        assert other["id"] != made["id"]
        assert len(receiver.at("/")) == 1, "its receiver had agreed already"
        for total in (1, 2):
            order(zone, total)
        await until(lambda: len(occurrences(receiver)) == 3)
        by = {made["id"]: [], other["id"]: []}  # type: ignore[var-annotated]
        for called in occurrences(receiver):
            assert called.verified(SECRET)
            assert called.id == called.json["eventId"] == called.json["cursor"]
            by[called.headers["x-mcp-subscription-id"]].append(called.json)
        assert totals(by[made["id"]]) == [2]
        assert totals(by[other["id"]]) == [1, 2]
        page = await mcp.ask("events/poll", name=NAME, arguments=ARGUMENTS, cursor=made["cursor"])
        [polled], [pushed] = page["events"], by[made["id"]]
        assert pushed == {**polled, "cursor": polled["eventId"]}

        def ended() -> bool:
            query = "/v1/deliveries?state=pending&endpoint="
            found = [f"{query}{one['id']}" for one in endpoints(hub, zone)]
            return not any(hub.call("GET", path, key=zone.admin).json["items"] for path in found)

        await until(ended)
        again = await subscribe(mcp, receiver)
        assert again["id"] == made["id"]
        assert again["deliveryStatus"]["active"] is True
        assert again["deliveryStatus"]["lastError"] is None
        assert again["deliveryStatus"]["lastDeliveryAt"]
        rest = await mcp.ask("events/poll", name=NAME, arguments=ARGUMENTS, cursor=again["cursor"])
        assert rest["events"] == [], "the watermark has passed what was acknowledged"
        assert len(endpoints(hub, zone)) == 2
        gone = {"name": NAME, "arguments": ARGUMENTS, "delivery": {"url": receiver.url()}}
        await mcp.ask("events/unsubscribe", **gone)
        assert [one["format"] for one in endpoints(hub, zone)] == ["mcp"]
        with refused() as error:
            await mcp.ask("events/unsubscribe", **gone)
        assert (error.value.code, error.value.data) == (-32023, {"kind": "subscription"})


async def test_a_receiver_that_does_not_agree_gets_nothing(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        for answer, body, reason in (
            (answer_ok, lambda called: b'{"challenge": "another"}', "challenge_failed"),
            (lambda called: (500, {}), agree, "http_5xx"),
        ):
            receiver.answer, receiver.body = answer, body  # type: ignore[assignment]
            with refused() as error:
                await subscribe(mcp, receiver)
            assert (error.value.code, error.value.data) == (-32027, {"reason": reason})
            assert endpoints(hub, zone) == []
            assert hub.call("GET", "/v1/registrations", key=zone.admin).json["items"] == []


async def test_what_an_interrupted_request_left_is_made_again(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        made = await subscribe(mcp, receiver)
        gone = {"name": NAME, "arguments": ARGUMENTS, "delivery": {"url": receiver.url()}}
        await mcp.ask("events/unsubscribe", **gone)
        receiver.body = lambda called: b""  # it agrees to nothing
        left = {"url": receiver.url(), "format": "mcp", "handshake": "mcp", "ordered": True}
        endpoint = hub.call("POST", "/v1/endpoints", left, key=zone.admin).json["id"]
        body = {"key": made["id"], "streams": ["orders"], "endpoint": endpoint}
        assert hub.call("POST", "/v1/registrations", body, key=zone.admin).status == 201
        receiver.body = agree
        again = await subscribe(mcp, receiver)
        assert "deliveryStatus" not in again
        [live] = endpoints(hub, zone)
        assert live["id"] != endpoint
        order(zone, 2)
        await until(lambda: len(occurrences(receiver)) == 1)


async def test_equal_requests_at_a_time_make_one_subscription(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        made = await asyncio.gather(*[subscribe(mcp, receiver) for _ in range(4)])
    assert len({one["id"] for one in made}) == 1
    assert len(endpoints(hub, zone)) == 1
    order(zone, 2)
    await until(lambda: len(occurrences(receiver)) == 1)


async def test_an_endpoint_that_a_client_chose_itself_is_left_alone(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        await subscribe(mcp, receiver)
        [one] = hub.call("GET", "/v1/registrations", key=zone.admin).json["items"]
        own = {"url": "https://hooks.example/own"}
        own["endpoint"] = hub.call("POST", "/v1/endpoints", own, key=zone.admin).json["id"]
        moved = {"endpoint": own["endpoint"]}
        path = f"/v1/registrations/{one['id']}"
        assert hub.call("PATCH", path, moved, key=zone.admin).status == 200
        with refused() as error:
            await subscribe(mcp, receiver)
        assert (error.value.code, error.value.data["code"]) == (-32026, "key_taken")
    await until(lambda: ended(hub, zone) == [own["endpoint"]])
    assert len(farewells(receiver)) == 1, "its own endpoint is no subscription any more"


async def test_each_refresh_may_have_another_secret(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        for secret in [new_secret() for _ in range(limits.ENDPOINT_SECRETS_MAX + 2)]:
            await subscribe(mcp, receiver, secret=secret)
    order(zone, 2)
    await until(lambda: len(occurrences(receiver)) == 1)
    assert occurrences(receiver)[0].verified(secret)


async def test_a_subscription_begins_at_its_cursor_and_ends_with_its_time(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        start = (await mcp.ask("events/poll", name=NAME, arguments=ARGUMENTS))["cursor"]
        for total in (2, 3):
            order(zone, total)
        made = await subscribe(mcp, receiver, cursor=start, ttlMs=1_000)
        assert (made["cursor"], made["truncated"]) == (start, False)
        until_at = datetime.fromisoformat(made["refreshBefore"]) - datetime.now(UTC)
        assert timedelta(minutes=4) < until_at < timedelta(minutes=6), "the shortest grant"
        order(zone, 4)
        await until(lambda: len(occurrences(receiver)) == 3)
        assert sorted(totals([one.json for one in occurrences(receiver)])) == [2, 3, 4]
        rotated = new_secret()
        await subscribe(mcp, receiver, secret=rotated)
        order(zone, 5)
        await until(lambda: len(occurrences(receiver)) == 4)
        last = occurrences(receiver)[-1]
        assert last.verified(rotated)
        assert last.verified(SECRET), "the secret before signs too, for a time"
        [endpoint] = endpoints(hub, zone)
        hub.sql("UPDATE endpoints SET expires_at = now() WHERE id = %s", endpoint["id"])
        delete_expired(hub.database_url)
        gone = {"name": NAME, "arguments": ARGUMENTS, "delivery": {"url": receiver.url()}}
        with refused():
            await mcp.ask("events/unsubscribe", **gone)
        assert endpoints(hub, zone) == []


# whether a farewell that failed waits for its next attempt
WAITING = "SELECT 1 FROM endpoint_verifications WHERE endpoint_id = %s AND requested_at > now()"


def farewells(sink: Sink) -> list[Called]:
    return [called for called in sink.at("/") if called.json.get("type") == "terminated"]


def no_farewell(called: Called) -> tuple[int, dict[str, str]]:
    return 503 if called.json.get("type") == "terminated" else 200, {}


async def delete(hub: LiveHub, zone: LiveZone, registration: dict[str, Any]) -> None:
    """Delete the registration of a subscription whose receiver takes no farewell."""
    path = f"/v1/registrations/{registration['id']}"
    assert hub.call("DELETE", path, key=zone.admin).status == 204
    await until(lambda: hub.sql(WAITING, registration["endpoint"]) == [(1,)])


def retry_farewells(hub: LiveHub) -> None:
    """Let what waits for its next attempt be due."""
    hub.sql("UPDATE endpoint_verifications SET requested_at = now() WHERE farewell IS NOT NULL")
    hub.sql("NOTIFY eventhub_verifications")


def counted_farewells(hub: LiveHub) -> Counter[str]:
    found = samples(hub, "eventhub_mcp_farewells_total")
    return Counter({labels["outcome"]: int(value) for labels, value in found})


def ended(hub: LiveHub, zone: LiveZone) -> list[int]:
    """Delete what has expired; return the endpoints that are left."""
    delete_expired(hub.database_url)
    return [one["id"] for one in endpoints(hub, zone)]


async def test_a_receiver_is_notified_that_its_subscription_was_deleted(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    before = counted_farewells(hub)
    receiver.answer = no_farewell
    async with connected(hub, zone.admin) as mcp:
        first = await subscribe(mcp, receiver)
        await subscribe(mcp, receiver, arguments={"stream": "orders"}, ttlMs=None)
    found = hub.call("GET", "/v1/registrations", key=zone.admin).json["items"]
    own, other = sorted(found, key=lambda one: bool(one["key"] != first["id"]))
    await delete(hub, zone, own)
    assert len(farewells(receiver)) == 1
    path = "/v1/streams/system/events?from=oldest&limit=1000&type=endpoint.changed"
    events = hub.call("GET", path, key=zone.admin).json["events"]
    changed = [one["event"]["attributes"] for one in events]
    found = [one for one in changed if one["endpoint"] == own["endpoint"]]
    assert [one["enabled"] for one in found] == [True, False], "agreed, then ended"
    assert (found[-1]["reason"], found[-1]["format"]) == ("request", "mcp")
    receiver.answer = answer_ok
    retry_farewells(hub)
    await until(lambda: len(farewells(receiver)) == 2)
    for called in farewells(receiver):
        assert called.verified(SECRET)
        assert called.headers["x-mcp-subscription-id"] == first["id"]
        assert called.id.startswith("msg_terminated_")
        assert called.json["error"]["code"] == -32023
    assert len({called.id for called in farewells(receiver)}) == 1
    await until(lambda: ended(hub, zone) == [other["endpoint"]])
    assert counted_farewells(hub) - before == {"delivered": 1, "refused": 1}
    order(zone, 2)
    await until(lambda: totals([one.json for one in occurrences(receiver)]) == [2])
    async with connected(hub, zone.admin) as mcp:
        gone = {"name": NAME, "delivery": {"url": receiver.url()}}
        await mcp.ask("events/unsubscribe", **gone, arguments={"stream": "orders"})
    assert endpoints(hub, zone) == []
    assert len(farewells(receiver)) == 2


async def test_a_receiver_that_was_subscribed_again_is_not_notified_of_the_end_before(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    receiver.answer = no_farewell
    async with connected(hub, zone.admin) as mcp:
        first = await subscribe(mcp, receiver)
        [one] = hub.call("GET", "/v1/registrations", key=zone.admin).json["items"]
        await delete(hub, zone, one)
        assert (await subscribe(mcp, receiver))["id"] == first["id"]
        retry_farewells(hub)
        later = {"mode": "webhook", "url": receiver.url("/later"), "secret": SECRET}
        await mcp.ask("events/subscribe", name=NAME, arguments=ARGUMENTS, delivery=later)
    assert len(farewells(receiver)) == 1


async def test_a_refused_occurrence_is_not_repeated_and_the_subscription_goes_on(
    hub: LiveHub, zone: LiveZone, receiver: Sink
) -> None:
    shop(zone)
    async with connected(hub, zone.admin) as mcp:
        await subscribe(mcp, receiver)
        receiver.answer = lambda called: (410 if totals([called.json]) == [2] else 200, {})
        for total in (2, 3):
            order(zone, total)
        await until(lambda: len(occurrences(receiver)) == 2)
        assert totals([one.json for one in occurrences(receiver)]) == [2, 3]
        [endpoint] = endpoints(hub, zone)
        assert endpoint["enabled"] is True


async def test_wrong_subscriptions_are_refused(hub: LiveHub, zone: LiveZone, sink: Sink) -> None:
    shop(zone)
    right = {"url": "https://hooks.example/a", "secret": SECRET}
    for delivery, code, field in (
        ({**right, "url": "http://hooks.example/a"}, -32602, "delivery.url"),
        ({**right, "url": "https://10.0.0.1/a"}, -32602, "delivery.url"),
        ({**right, "url": "https://[::1"}, -32602, "delivery.url"),
        ({**right, "secret": "whsec_c2hvcnQ="}, -32602, "delivery.secret"),
        ({"url": right["url"]}, -32602, "delivery.secret"),
        ({**right, "mode": "push"}, -32026, None),
        ({}, -32602, "delivery.url"),
    ):
        message = poll(delivery=delivery) | {"method": "events/subscribe"}
        error = post(hub, zone.admin, message, **{"Mcp-Method": "events/subscribe"}).json["error"]
        assert error["code"] == code, error
        assert error["data"].get("position", {}).get("field") == field, error
    assert endpoints(hub, zone) == []
    async with connected(hub, zone.key("listen:others", client="narrow")) as mcp:
        with refused() as error:
            await subscribe(mcp, sink)
        assert error.value.code == -32024
