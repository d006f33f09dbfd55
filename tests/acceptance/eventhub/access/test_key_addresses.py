"""Keys that may be used from some addresses only, on every transport. Linux answers on every
address below 127.0.0.0/8, so a test chooses from where it calls.
"""

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventhub_client.types import HubProblem
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from eventhub.base import limits
from tests.acceptance.eventhub.access.test_access import EFFECTIVE_S, MEASURED_S, closed
from tests.acceptance.wire import EVENT, session
from tests.busy import stretched
from tests.live import Answer, LiveHub, LiveZone
from tests.live_processes import WebProcess

HERE, ELSEWHERE = "127.0.0.1", "127.0.0.9"
NETWORK = ["127.0.0.8/30", "2001:db8::/32"]
EVENTS = "/v1/streams/orders/events"


@pytest.fixture
def zone(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def call_from(source: str, url: str, method: str, path: str, **headers: str) -> Answer:
    """Send a request from an address of this machine."""
    connection = http.client.HTTPConnection(
        url.removeprefix("http://"), timeout=20, source_address=(source, 0)
    )
    try:
        body = json.dumps(EVENT if method == "POST" else {}) if method != "GET" else None
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", "/v1/streams", {}),
        ("PUT", "/v1/streams/more", {}),
        ("POST", EVENTS, {}),
        ("GET", f"{EVENTS}?from=oldest", {}),
        ("GET", f"{EVENTS}?timeout=5", {}),
        ("GET", EVENTS, {"Accept": "text/event-stream"}),
        ("GET", "/v1/streams/orders/closure", {}),
        ("POST", "/v1/registrations/bulk", {"Content-Type": "application/x-ndjson"}),
        ("POST", "/v1/connection-tokens", {}),
        ("GET", "/readyz", {}),
    ],
)
def test_a_key_is_refused_from_elsewhere(
    zone: LiveZone, method: str, path: str, more: dict[str, str]
) -> None:
    key = zone.key("emit:*", "listen:*", "manage:*", allowed_addresses=NETWORK)
    refused = call_from(HERE, zone.hub.url, method, path, **bearer(key), **more)
    problem = refused.refused(403, "address_not_allowed")
    assert "127" not in refused.body.decode()
    assert problem["position"] == {}
    assert "eventhub-sequence" not in refused.headers
    if "event-stream" not in str(more) and "timeout" not in path:
        there = call_from(ELSEWHERE, zone.hub.url, method, path, **bearer(key), **more)
        assert there.status < 400 or there.json["code"] != "address_not_allowed", there
        assert there.status not in (401, 403), there


def test_what_a_caller_claims_of_its_address_does_not_count(zone: LiveZone) -> None:
    key = zone.key("listen:*", allowed_addresses=NETWORK)
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        headers = {name: ELSEWHERE, **bearer(key)}
        for path in ("/v1/streams", f"{EVENTS}?from=oldest"):
            found = call_from(HERE, zone.hub.url, "GET", path, **headers)
            found.refused(403, "address_not_allowed")


@pytest.fixture
def proxied(hub: LiveHub, tmp_path: Path) -> Iterator[WebProcess]:
    """Yield one more web process of the hub, which trusts a proxy at HERE."""
    env = {**hub.env, "EVENTHUB_TRUSTED_PROXIES": HERE}
    web = WebProcess("proxied", env, tmp_path / "web.log")
    web.start()
    try:
        yield web
    finally:
        web.stop()


def test_behind_a_trusted_proxy_the_address_of_its_caller_counts(
    zone: LiveZone, proxied: WebProcess
) -> None:
    key = zone.key("listen:*", allowed_addresses=["192.0.2.0/24", "2001:db8::/32"])

    def status(forwarded: str, source: str = HERE) -> int:
        headers = {"X-Forwarded-For": forwarded, **bearer(key)}
        found = {
            call_from(source, proxied.url, "GET", path, **headers).status
            for path in ("/v1/streams", f"{EVENTS}?from=oldest")
        }
        [same] = found
        return same

    assert status("192.0.2.7") == status("::ffff:192.0.2.7") == status("2001:DB8::1") == 200
    assert status("192.0.2.7", source=ELSEWHERE) == 403  # no trusted proxy
    assert status("192.0.2.7, 198.51.100.9") == 403  # the first one is the caller's own claim
    assert status("198.51.100.9") == status("unknown") == status("") == 403


async def test_a_token_and_a_socket_have_the_addresses_of_the_key(zone: LiveZone) -> None:
    key = zone.key("listen:*", allowed_addresses=[HERE])
    token = zone.token(key)
    other = zone.key("listen:*", allowed_addresses=NETWORK)
    async with session(zone.hub, token) as reader:
        await reader.listen("orders")
    for credential in (token, other):
        source = (ELSEWHERE, 0) if credential == token else (HERE, 0)
        with pytest.raises(InvalidStatus) as caught:
            async with connect(
                zone.hub.ws_url, additional_headers=bearer(credential), local_addr=source
            ):
                pass
        assert caught.value.response.status_code == 403
        assert json.loads(caught.value.response.body)["code"] == "address_not_allowed"


@pytest.mark.parametrize("web", [0, 1])
async def test_open_sockets_are_checked_again_when_the_list_changes(
    zone: LiveZone, web: int
) -> None:
    key = zone.key("listen:*", allowed_addresses=[HERE])
    path = f"/v1/keys/{key.split('_')[1]}"
    async with session(zone.hub, key, web=web) as reader:
        await reader.listen("orders")
        changed = change(zone, path, {"allowed_addresses": [HERE, *NETWORK]})
        assert changed.status == 200
        zone.emit("orders", EVENT)
        assert len(await reader.events(1)) == 1
        closing = asyncio.create_task(closed(reader))
        assert (await asyncio.to_thread(change, zone, path, {"allowed_addresses": NETWORK})).status
        async with asyncio.timeout(stretched(EFFECTIVE_S + MEASURED_S)):
            assert await closing == (4403, "address_not_allowed")
        assert reader.skipped[-1]["code"] == "address_not_allowed"


async def test_the_client_does_not_reconnect_from_an_address_that_is_no_longer_allowed(
    zone: LiveZone,
) -> None:
    key = zone.key("listen:*", allowed_addresses=[HERE])
    path = f"/v1/keys/{key.split('_')[1]}"
    zone.emit("orders", EVENT)
    async with zone.client(key=key) as client:
        with pytest.raises(HubProblem) as caught:
            async with asyncio.timeout(60):
                async for _ in client.listen("orders", start="oldest"):
                    await asyncio.to_thread(change, zone, path, {"allowed_addresses": NETWORK})
    assert (caught.value.code, caught.value.status) == ("address_not_allowed", 403)


def test_an_open_stream_of_events_ends_when_the_list_changes(zone: LiveZone) -> None:
    key = zone.key("listen:*")
    connection = http.client.HTTPConnection(zone.hub.url.removeprefix("http://"), timeout=20)
    headers = {"Accept": "text/event-stream", **bearer(key)}
    connection.request("GET", EVENTS, headers=headers)
    response = connection.getresponse()
    assert response.status == 200
    path = f"/v1/keys/{key.split('_')[1]}"
    assert change(zone, path, {"allowed_addresses": NETWORK}).status == 200
    assert b"address_not_allowed" in response.read()
    connection.close()


def change(zone: LiveZone, path: str, body: dict[str, Any]) -> Answer:
    return zone.hub.call("PATCH", path, body, key=zone.admin)


def test_the_addresses_are_shown_and_changed(zone: LiveZone) -> None:
    given = ["10.1.0.0/16", "10.1.0.0/16", "192.0.2.7/32", "2001:DB8:0::/32", "::1"]
    key = zone.key("listen:*", allowed_addresses=given)
    path = f"/v1/keys/{key.split('_')[1]}"
    shown = ["10.1.0.0/16", "192.0.2.7", "2001:db8::/32", "::1"]
    assert change(zone, path, {"label": "x"}).json["allowed_addresses"] == shown
    assert change(zone, path, {"allowed_addresses": None}).json["allowed_addresses"] is None
    assert zone.hub.call("GET", "/v1/streams", key=key).status == 200


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ([], ""),
        ("10.0.0.0/8", ""),
        (["x"], ".0"),
        (["10.0.0.0/8", "10.0.0.0/33"], ".1"),
        (["10.0.0.1/8"], ".0"),
        (["::ffff:10.0.0.1"], ".0"),
        ([1], ".0"),
        ([None], ".0"),
        (["fe80::1%eth0"], ".0"),
        (["1" * 500], ".0"),
    ],
)
def test_a_malformed_list_is_refused(zone: LiveZone, value: Any, at: str) -> None:
    body = {"grants": [], "allowed_addresses": value}
    answer = zone.hub.call("POST", "/v1/clients/tester/keys", body, key=zone.admin)
    problem = answer.refused(400, "invalid_field")
    assert problem["position"] == {"field": f"allowed_addresses{at}"}


def test_a_list_is_bounded(zone: LiveZone) -> None:
    most = limits.ALLOWED_ADDRESSES_PER_KEY_MAX
    many = [f"10.0.0.{number}" for number in range(most + 1)]
    body = {"grants": [], "allowed_addresses": many}
    path = "/v1/clients/tester/keys"
    zone.hub.call("POST", path, body, key=zone.admin).refused(400, "field_too_long")
    body["allowed_addresses"] = many[:most]
    assert zone.hub.call("POST", path, body, key=zone.admin).status == 201


def test_a_key_issues_keys_for_no_other_addresses(zone: LiveZone) -> None:
    own = zone.key("manage:*", allowed_addresses=["127.0.0.0/8"])
    path = "/v1/clients/tester/keys"

    def issue(**more: Any) -> Answer:
        return zone.hub.call("POST", path, {"grants": [], **more}, key=own)

    assert issue().json["allowed_addresses"] == ["127.0.0.0/8"]
    narrower = issue(allowed_addresses=["127.1.0.0/16"])
    assert narrower.json["allowed_addresses"] == ["127.1.0.0/16"]
    problem = issue(allowed_addresses=["127.0.0.1", "10.0.0.1"]).refused(403, "wider_grant")
    assert problem["position"] == {"field": "allowed_addresses"}
    other = f"/v1/keys/{narrower.json['public_id']}"
    for value in (None, ["10.0.0.1"]):
        answer = zone.hub.call("PATCH", other, {"allowed_addresses": value}, key=own)
        answer.refused(403, "wider_grant")
