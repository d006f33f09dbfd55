"""Each event of `system` names the caller whose act it announces, and each reply its request."""

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.acceptance.eventhub.access.test_audit_trail import every_act
from tests.acceptance.eventhub.api.test_reply_sequences import ask, caused, event_of
from tests.live import OPERATOR, Answer, LiveHub, LiveZone
from tests.live_processes import WebProcess

ID = "x-request-id"
LOCAL = "127.0.0.1"


def by(zone: LiveZone, answer: Answer) -> Any:
    """Return the caller of the one event that the call caused."""
    assert answer.status < 400, answer
    [sequence] = caused(answer)
    return event_of(zone, "system", sequence)["attributes"]["by"]


def as_key(zone: LiveZone, **request: str) -> dict[str, str]:
    public_id = zone.admin.split("_")[1]
    return {"kind": "key", "key": public_id, "client": "tester", "address": LOCAL, **request}


def test_a_change_names_the_key_its_client_address_and_request(zone: LiveZone) -> None:
    answer = ask(zone, "PUT", "streams/orders")
    assert re.fullmatch("[0-9a-f]{32}", answer.headers[ID])
    assert by(zone, answer) == as_key(zone, request_id=answer.headers[ID])


def test_a_change_names_the_operator(zone: LiveZone) -> None:
    answer = zone.hub.operate("POST", f"/v1/clients?zone={zone.name}", {"name": "till"})
    expected = {"kind": "operator", "operator": OPERATOR, "address": LOCAL}
    assert by(zone, answer) == {**expected, "request_id": answer.headers[ID]}


def test_each_event_of_one_request_names_its_caller(zone: LiveZone) -> None:
    zone.create_stream("orders")
    lines = [{"op": "create", "streams": ["orders"]}] * 3
    answer = zone.hub.call(
        "POST",
        "/v1/registrations/bulk",
        "".join(f"{json.dumps(line)}\n" for line in lines).encode(),
        key=zone.admin,
        headers={"Content-Type": "application/x-ndjson", "X-Request-Id": "night/4711"},
    )
    assert answer.headers[ID] == "night/4711"
    progress = json.loads(answer.body.splitlines()[0])
    assert progress["created"] == 3
    last = progress["sequence"]
    found = [event_of(zone, "system", number) for number in range(last - 2, last + 1)]
    assert [event["type"] for event in found] == ["registration.created"] * 3
    expected = as_key(zone, request_id="night/4711")
    assert [event["attributes"]["by"] for event in found] == [expected] * 3


@pytest.mark.parametrize("text", ["x", "9f1c:a/b_C=+@-.", "x" * 128])
def test_a_request_id_of_the_caller_is_taken_over(zone: LiveZone, text: str) -> None:
    answer = ask(zone, "PUT", f"streams/{secrets.token_hex(4)}", X_Request_Id=text)
    assert answer.headers[ID] == text
    assert by(zone, answer)["request_id"] == text


@pytest.mark.parametrize("text", ["", "a b", "x" * 129, 'a"b', "ü", "a,b"])
def test_an_invalid_request_id_is_replaced(zone: LiveZone, text: str) -> None:
    answer = ask(zone, "GET", "streams", X_Request_Id=text)
    assert answer.status == 200
    assert re.fullmatch("[0-9a-f]{32}", answer.headers[ID])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/healthz", 200),
        ("/v1/streams/orders/events", 401),
        ("/v1/streams", 401),
        ("/v1/nothing", 404),
        ("/console/", 200),
    ],
)
def test_every_reply_has_an_id(hub: LiveHub, path: str, status: int) -> None:
    first, second = (hub.call("GET", path) for _ in range(2))
    assert first.status == status
    assert first.headers[ID] != second.headers[ID]


async def test_a_websockets_handshake_has_an_id(hub: LiveHub, zone: LiveZone) -> None:
    headers = {"Authorization": f"Bearer {zone.admin}", "X-Request-Id": "socket-1"}
    async with connect(hub.ws_url, additional_headers=headers) as socket:
        assert socket.response is not None
        assert socket.response.headers[ID] == "socket-1"


def test_a_command_and_the_hub_itself_are_named(hub: LiveHub, zone: LiveZone) -> None:
    hub.manage("createkey", "shop", "--zone", zone.name, "--grant", "listen:*")
    acts = [*every_act(zone, "type=hub.started&kind=hub"), *every_act(zone, "command=createkey")]
    found = [event_of(zone, "system", act["sequence"]) for act in acts]
    callers = {event["type"]: event["attributes"]["by"] for event in found}
    assert callers["hub.started"] == {"kind": "hub"}
    command = {"kind": "command", "command": "createkey"}
    assert callers["client.created"] == callers["key.created"] == command


@pytest.fixture
def proxied(hub: LiveHub, tmp_path: Path) -> Iterator[WebProcess]:
    """Yield one more web process of the hub, which trusts two proxies."""
    env = {**hub.env, "EVENTHUB_TRUSTED_PROXIES": f"{LOCAL}, 10.1.0.0/16"}
    web = WebProcess("proxied", env, tmp_path / "web.log")
    web.start()
    try:
        yield web
    finally:
        web.stop()


def test_behind_trusted_proxies_the_address_is_the_callers(
    zone: LiveZone, proxied: WebProcess
) -> None:
    def address(forwarded: str, url: str = proxied.url) -> Any:
        return by(
            zone,
            zone.hub.call(
                "PUT",
                f"/v1/streams/{secrets.token_hex(4)}",
                key=zone.admin,
                headers={"X-Forwarded-For": forwarded},
                url=url,
            ),
        ).get("address")

    assert address("192.0.2.7") == "192.0.2.7"
    assert address("198.51.100.9, 192.0.2.7, 10.1.2.3") == "192.0.2.7"  # the first one is forged
    assert address("::ffff:192.0.2.7") == "192.0.2.7"
    assert address("2001:DB8::1") == "2001:db8::1"
    assert address("<script>") is None
    assert address("192.0.2.7", zone.hub.url) == LOCAL  # its process trusts nobody


def test_log_lines_have_the_request_id(hub: LiveHub, proxied: WebProcess) -> None:
    headers = {"Host": "evil.example.org", "X-Request-Id": "to-be-found"}
    assert hub.call("GET", "/v1/streams", url=proxied.url, headers=headers).status == 400
    [line] = [line for line in proxied.log().splitlines() if "evil.example.org" in line]
    assert "to-be-found" in line
