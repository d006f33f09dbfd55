"""Bad input at the websocket: its handshake, and every message."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest

from eventhub.base import limits
from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
ROUTE = "GET /v1/ws"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
LISTEN = {"op": "listen", "listener": "a", "stream": "orders"}
INTEREST = {"op": "interest", "interest": "i", "stream": "orders"}
ACK = {"op": "ack", "listener": "b"}
SESSION_ACK = {"op": "ack", "session": "s", "stream": "orders"}
NAK = {"op": "nak", "session": "s", "stream": "orders"}
CREDIT = {"op": "credit", "session": "s"}
EMIT = {"op": "emit", "stream": "orders", "events": {"domain": "a", "type": "b"}}
RESEND = {"op": "resend", "listener": "b"}
NOWHERE = "00000000-0000-0000-0000-000000000000"


class BadMessage(NamedTuple):
    """One bad message and its answer: code, position, and the listen it speaks of."""

    name: str
    op: str
    message: Any  # bytes and str as they are, anything else as JSON
    code: str
    at: dict[str, Any]
    listener: str | None = None
    key: str = "admin"
    answer: str = "error"

    @property
    def route(self) -> str:
        return f"WS {self.op}"


def shake(name: str, status: int, code: str, *, path: str = "/v1/ws", **more: Any) -> Bad:
    headers = {**UPGRADE, **more.pop("headers", {})}
    at = {"field": more.pop("at")} if "at" in more else {}
    return Bad(name, ROUTE, path, status, code, at, headers=headers, **more)


TOKEN = "/v1/ws?access_token="
HANDSHAKES = (
    shake("no key", 401, "unauthenticated", key=""),
    *(shake(f"{name} key", 401, "invalid_credentials", key=name)
      for name in ("wrong", "garbage", "revoked", "expired", "forged token")),
    shake("long key", 401, "unauthenticated", key="long"),
    shake("expired token", 401, "token_expired", key="expired token"),
    shake("no token", 401, "invalid_credentials", key="", path=f"{TOKEN}x"),
    shake("a token and a key", 400, "invalid_field", path=f"{TOKEN}x", at="Authorization"),
    shake("two tokens", 400, "invalid_field", key="", path=f"{TOKEN}x&access_token=y",
          at="Authorization"),
    shake("a key in the URL", 401, "invalid_credentials", key="",
          path=f"{TOKEN}ehk_aaaaaaaaaaaa_" + "A" * 43),
    shake("NUL in the token", 401, "invalid_credentials", key="", path=f"{TOKEN}%00%ff"),
    shake("unknown subprotocol", 400, "invalid_field", at="sec-websocket-protocol",
          headers={"Sec-WebSocket-Protocol": "mqtt, soap"}),
    shake("unknown parameter", 400, "unknown_field", at="colour", path="/v1/ws?colour=red"),
    shake("another address", 403, "address_not_allowed", key="elsewhere"),
    shake("another origin", 403, "origin_not_allowed", headers={"Origin": "https://evil.example"}),
    shake("another path", 404, "not_found", at="path", path="/v1/socket"),
    shake("an unknown route", 404, "not_found", at="path", path="/healthz"),
    Bad("no upgrade", ROUTE, "/v1/ws", 426, "upgrade_required"),
    Bad("a post", ROUTE, "/v1/ws", 426, "upgrade_required", method="POST", body={}),
)  # fmt: skip


def bad(name: str, op: str, message: Any, code: str, at: str = "", **more: Any) -> BadMessage:
    return BadMessage(name, op, message, code, {"field": at} if at else {}, **more)


def listen(name: str, code: str, at: str = "", *, seen: bool = True, **fields: Any) -> BadMessage:
    """Return a bad listen. `seen`: it was parsed far enough to know its name."""
    more = {name: fields.pop(name) for name in ("key", "answer") if name in fields}
    called = fields.get("listener", "a") if seen else None
    return bad(name, "listen", {**LISTEN, **fields}, code, at, listener=called, **more)


NO_MESSAGE = (
    bad("nothing", "listen", "", "malformed_json"),
    bad("garbage", "listen", b"\x00\x01\x02\xff", "malformed_json"),
    bad("truncated", "listen", '{"op": "listen"', "malformed_json"),
    bad("an array", "listen", [LISTEN], "invalid_field"),
    bad("a number", "listen", 17, "invalid_field"),
    bad("no op", "listen", {"listener": "a"}, "missing_field", "op"),
    bad("unknown op", "listen", {"op": "shout"}, "unknown_operation", "op"),
    bad("op of the hub", "listen", {"op": "listening"}, "unknown_operation", "op"),
    bad("op that is no text", "listen", {"op": 17}, "invalid_field", "op"),
    bad("bad UTF-8", "listen", b'{"op": "listen", "listener": "\xff"}', "invalid_utf8"),
    bad("deep", "listen", '{"op": "listen", "attributes": ' + "[" * 20_000, "too_deep"),
    bad("event", "listen", {"domain": "a", "type": "b"}, "missing_field", "op"),
)
MESSAGES = (
    *NO_MESSAGE,
    listen("no name", "invalid_field", "listener", seen=False, listener=""),
    listen("long name", "field_too_long", "listener", seen=False, listener="x" * 65),
    listen("name that is no text", "invalid_field", "listener", seen=False, listener=17),
    bad("no stream", "listen", {"op": "listen", "listener": "a"}, "missing_field", "stream"),
    listen("empty stream", "invalid_field", "stream", seen=False, stream=""),
    listen("long stream", "field_too_long", "stream", seen=False, stream="x" * 201),
    listen("unknown field", "unknown_field", "since", seen=False, since=1),
    listen("unknown stream", "unknown_stream", stream="nowhere"),
    listen("NUL stream", "invalid_field", "stream", seen=False, stream="a\0b"),
    listen("another zone's stream", "unknown_stream", stream="theirs"),
    listen("no grant", "forbidden", key="emitter"),
    listen("another stream's grant", "forbidden", key="listener", stream="secret"),
    listen("a listener on system", "forbidden", key="listener", stream="system"),
    listen("a token's other stream", "forbidden", key="narrow token", stream="secret"),
    listen("mask of 0", "invalid_mask", "mask", mask=0),
    listen("mask below 0", "invalid_mask", "mask", mask=-1),
    listen("mask of 65 bits", "invalid_mask", "mask", mask=1 << 64),
    listen("mask in hex", "invalid_mask", "mask", mask="0x1"),
    listen("mask of nothing", "invalid_mask", "mask", mask=[]),
    listen("mask of an unknown channel", "unknown_channel", "mask", mask=["nobody"]),
    listen("mask of a number", "invalid_field", "mask.0", seen=False, mask=[1]),
    listen("no start", "invalid_cursor", "from", **{"from": "yesterday"}),
    listen("start of a number", "invalid_field", "from", seen=False, **{"from": 17}),
    listen("cursor without a segment", "missing_field", "from.segment",
           **{"from": {"sequence": 1}}),
    listen("cursor and time at once", "invalid_cursor", "from",
           **{"from": {"segment": "<segment>", "sequence": 1, "time": "2026-01-01T00:00:00Z"}}),
    listen("time without an offset", "invalid_cursor", "from",
           **{"from": {"time": "2026-01-01T00:00:00"}}),
    listen("state that is none", "invalid_field", "state", seen=False, state="sometimes"),
    listen("cursor that is no UUID", "invalid_field", "from.segment", seen=False,
           **{"from": {"segment": "x", "sequence": 1}}),
    listen("cursor below 0", "invalid_field", "from.sequence", seen=False,
           **{"from": {"segment": NOWHERE, "sequence": -1}}),
    listen("cursor beyond 64 bits", "number_out_of_range", "from.sequence", seen=False,
           **{"from": {"segment": NOWHERE, "sequence": 1 << 64}}),
    listen("cursor of no segment", "segment_mismatch", answer="segment_mismatch",
           **{"from": {"segment": NOWHERE, "sequence": 1}}),
    listen("cursor of another stream", "segment_mismatch", answer="segment_mismatch",
           **{"from": {"segment": "<segment>", "sequence": 1}}),
    listen("cursor ahead", "segment_mismatch", answer="segment_mismatch", stream="old",
           **{"from": {"segment": "<segment>", "sequence": 1 << 40}}),
    listen("cursor of what is gone", "gap", answer="gap", stream="old",
           **{"from": {"segment": "<segment>", "sequence": 0}}),
    listen("body", "body_not_filterable", "body", body={"a": 1}),
    listen("domain that is no text", "invalid_field", "domain", domain=17),
    listen("long type", "field_too_long", "type", type="x" * 2_000),
    listen("attributes that are none", "invalid_field", "attributes", attributes=[]),
    listen("nested attribute", "invalid_field", "attributes.a", attributes={"a": {"b": 1}}),
    listen("65 pairs", "field_too_long", "attributes", attributes={f"n{n}": n for n in range(65)}),
    listen("unknown language", "unknown_language", "language", language="sql", filter="x"),
    listen("language a number", "invalid_field", "language", language=7, filter="x"),
    listen("filter without its language", "invalid_field", "language", filter="x"),
    listen("language without a filter", "missing_field", "filter", language="ready"),
    listen("filter that is none", "filter_syntax", "filter", language="predicate", filter="("),
    listen("object for a text", "invalid_field", "filter", language="ready", filter={}),
    listen("filter beside a body", "body_not_filterable", "body", language="predicate",
           filter="true", body=1),
    listen("filter too large", "filter_too_large", "filter", language="propositional",
           filter="(and " + " ".join(f"(or a{n} b{n} c{n})" for n in range(100)) + ")"),
    listen("window of 0", "invalid_field", "window", seen=False, window=0),
    listen("wide window", "invalid_field", "window", seen=False, window=10_001),
    bad("nobody's", "stop", {"op": "stop", "listener": "b"}, "unknown_listener", listener="b"),
    bad("no name", "stop", {"op": "stop"}, "missing_field", "listener"),
    bad("nobody's", "ack", {**ACK, "sequence": 1}, "unknown_listener", listener="b"),
    bad("no sequence", "ack", ACK, "missing_field", "sequence", listener="b"),
    bad("single ones", "ack", {**ACK, "sequence": 1, "sequences": [1]}, "unknown_field",
        "sequences", listener="b"),
    bad("of a session without a stream", "ack", {"op": "ack", "session": "s", "sequence": 1},
        "missing_field", "stream"),
    bad("of a session without a sequence", "ack", {**SESSION_ACK}, "missing_field", "sequence"),
    bad("of a session that is not connected", "ack", {**SESSION_ACK, "sequence": 1},
        "session_not_connected"),
    bad("below 0", "ack", {**ACK, "sequence": -1}, "invalid_field", "sequence"),
    bad("a text", "ack", {**ACK, "sequence": "1"}, "invalid_field", "sequence"),
    bad("beyond", "ack", {**ACK, "sequence": 1 << 64}, "number_out_of_range", "sequence"),
    bad("nobody's", "connect", {"op": "connect", "session": "nobody"}, "unknown_session",
        "session"),
    bad("NUL", "connect", {"op": "connect", "session": "a\0b"}, "invalid_field", "session"),
    bad("no name", "connect", {"op": "connect"}, "missing_field", "session"),
    bad("long name", "connect", {"op": "connect", "session": "x" * 201}, "field_too_long",
        "session"),
    bad("nobody's", "disconnect", {"op": "disconnect", "session": "s"}, "session_not_connected"),
    bad("nobody's", "nak", {**NAK, "sequences": [1]}, "session_not_connected"),
    bad("of no events", "nak", NAK, "missing_field", "sequences"),
    bad("of a listener", "nak", {**NAK, "sequences": [1], "listener": "b"}, "unknown_field",
        "listener"),
    bad("nobody's", "credit", {**CREDIT, "events": 1}, "session_not_connected"),
    bad("no events", "credit", CREDIT, "missing_field", "events"),
    bad("none", "credit", {**CREDIT, "events": 0}, "invalid_field", "events"),
    bad("too many", "credit", {**CREDIT, "events": 10_001}, "invalid_field", "events"),
    bad("no stream", "emit", {"op": "emit", "events": []}, "missing_field", "stream"),
    bad("no events", "emit", {"op": "emit", "stream": "orders"}, "missing_field", "events"),
    bad("an empty list", "emit", {"op": "emit", "stream": "orders", "events": []}, "empty_batch"),
    bad("no grant", "emit", EMIT, "forbidden", key="listener"),
    bad("the hub's own", "emit", {**EMIT, "stream": "system"}, "forbidden"),
    bad("unknown stream", "emit", {**EMIT, "stream": "nowhere"}, "unknown_stream"),
    bad("NUL session", "emit", {**EMIT, "session": "a\0b"}, "invalid_field", "session"),
    bad("unknown session", "emit", {**EMIT, "session": "nobody"}, "unknown_session", "session"),
    bad("nobody's", "resend", {**RESEND, "from": 1, "to": 1}, "unknown_listener", listener="b"),
    bad("no range", "resend", {**RESEND, "from": "1"}, "invalid_field", "from"),
    bad("no stream", "interest", {"op": "interest", "interest": "i"}, "missing_field", "stream"),
    bad("no grant", "interest", INTEREST, "forbidden", key="listener"),
    bad("the hub's own", "interest", {**INTEREST, "stream": "system"}, "forbidden"),
    bad("unknown stream", "interest", {**INTEREST, "stream": "nowhere"}, "unknown_stream"),
    bad("no shape", "interest", {**INTEREST, "shape": []}, "invalid_field", "shape"),
    bad("no audience", "interest", {**INTEREST, "audience": []}, "invalid_field", "audience"),
    bad("nobody's", "confirm", {"op": "confirm", "interest": "i"}, "unknown_interest"),
    bad("nobody's", "forget", {"op": "forget", "interest": "i"}, "unknown_interest"),
    bad("a number", "ping", {"op": "ping", "id": 17}, "invalid_field", "id"),
    bad("long", "ping", {"op": "ping", "id": "x" * 65}, "field_too_long", "id"),
    bad("unknown field", "pong", {"op": "pong", "at": 1}, "unknown_field", "at"),
    bad("long agent", "hello", {"op": "hello", "agent": "x" * 201}, "field_too_long", "agent"),
)  # fmt: skip


@asynccontextmanager
async def socket(
    world: World, key: str = "admin"
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    headers = {"Authorization": f"Bearer {world.keys[key]}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.ws_connect(world.hub.ws_url, max_msg_size=0) as opened,
    ):
        assert (await receive(opened))["op"] == "hello"
        yield opened


async def receive(opened: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await opened.receive_str(timeout=10))
    return message


async def send(opened: aiohttp.ClientWebSocketResponse, message: Any) -> None:
    if isinstance(message, bytes):
        await opened.send_bytes(message)
    else:
        await opened.send_str(message if isinstance(message, str) else json.dumps(message))


@pytest.mark.parametrize("case", HANDSHAKES, ids=lambda case: case.name)
def test_bad_handshake_is_refused_as_http(world: World, case: Bad) -> None:
    world.check(case)


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: f"{case.op} {case.name}")
async def test_bad_message_is_answered_and_the_socket_stays(world: World, case: BadMessage) -> None:
    message = case.message
    if isinstance(message, dict) and isinstance(message.get("from"), dict):
        segment = message["from"].get("segment", "").replace("<segment>", world.segments[0])
        start = {**message["from"], "segment": segment}
        message = {**message, "from": {name: start[name] for name in message["from"]}}
    async with socket(world, case.key) as opened:
        await send(opened, message)
        answer = await receive(opened)
        assert (answer["op"], answer["code"]) == (case.answer, case.code), answer
        assert answer["position"] == case.at, answer
        assert answer.get("listener") == case.listener, answer
        assert 400 <= answer["status"] < 500
        assert answer["detail"]
        await send(opened, {"op": "ping", "id": "still here"})
        assert await receive(opened) == {"op": "pong", "id": "still here"}


@pytest.mark.parametrize("size", [limits.MESSAGE_BYTES_MAX + 1, 16 * limits.MESSAGE_BYTES_MAX])
async def test_message_beyond_the_limit_closes_the_socket_with_1009(
    world: World, size: int
) -> None:
    async with socket(world) as opened:
        await opened.send_str("x" * size)
        closed = await opened.receive(timeout=10)
        assert closed.type is aiohttp.WSMsgType.CLOSE
        assert opened.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_text_that_is_not_utf8_closes_the_socket_with_1007(world: World) -> None:
    """That was logged as an error of the hub's, with a traceback."""
    logged = len(world.hub.web[0].log())
    async with socket(world) as opened:
        await opened.send_frame(b'{"op": "\xff"}', aiohttp.WSMsgType.TEXT)
        closed = await opened.receive(timeout=10)
        assert closed.type is aiohttp.WSMsgType.CLOSE
        assert opened.close_code == aiohttp.WSCloseCode.INVALID_TEXT
    assert "Traceback" not in world.hub.web[0].log()[logged:]


async def test_listen_of_a_name_that_is_taken(world: World) -> None:
    async with socket(world) as opened:
        await send(opened, LISTEN)
        assert (await receive(opened))["op"] == "listening"
        await send(opened, LISTEN)
        answer = await receive(opened)
        assert (answer["op"], answer["code"], answer["listener"]) == (
            "error",
            "listener_exists",
            "a",
        )


async def test_interest_of_a_name_that_is_taken(world: World) -> None:
    async with socket(world) as opened:
        await send(opened, INTEREST)
        assert (await receive(opened))["op"] == "interest"
        await send(opened, INTEREST)
        answer = await receive(opened)
        assert (answer["code"], answer["interest"]) == ("interest_exists", "i")


async def test_one_listen_too_many(world: World) -> None:
    async with socket(world) as opened:
        for number in range(limits.LISTENERS_PER_SOCKET_MAX + 1):
            await send(opened, {**LISTEN, "listener": f"n{number}"})
        async with asyncio.timeout(60):
            answers = [await receive(opened) for _ in range(limits.LISTENERS_PER_SOCKET_MAX + 1)]
        assert [answer["op"] for answer in answers[:-1]] == ["listening"] * (len(answers) - 1)
        assert (answers[-1]["op"], answers[-1]["code"]) == ("error", "too_many_requests")
