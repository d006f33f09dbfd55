"""Bad input below HTTP: what is no HTTP at all, bodies that never end or never come, and headers
that say two things.
"""

import asyncio
import http.client
import io
import json
from typing import NamedTuple

import pytest

from eventhub.base import limits
from tests.acceptance.bad_inputs import EMIT, EVENT, World
from tests.live import Answer

pytestmark = pytest.mark.usefixtures("untouched")
EMIT_LINE = b"POST /v1/streams/orders/events HTTP/1.1\r\n"
MANAGE_LINE = b"PUT /v1/channels/new HTTP/1.1\r\n"
PUT_CHANNEL = "PUT /v1/channels/{channel}"
BODY = json.dumps(EVENT).encode()


class Raw(NamedTuple):
    """Bytes on the wire, and the answer's status and code. `%(admin)s` and so on are keys."""

    name: str
    route: str
    data: bytes
    status: int
    code: str
    field: str = ""


def request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    common = (b"Host: localhost", b"Content-Type: application/json", b"Connection: close")
    return line + b"\r\n".join((*common, *headers)) + b"\r\n\r\n" + body


def chunked(total: int) -> bytes:
    """Return a body of so many spaces without Content-Length, in chunks of 64 KiB."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    return chunk * (total // 0x10000 + 1) + b"0\r\n\r\n"


FOREIGN = b"GET /v1/streams HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
KEY = b"Authorization: Bearer %(admin)s"
WRONG = b"Authorization: Bearer %(wrong)s"
CHUNKS = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(BODY)
REFUSED = (
    *(Raw(f"two keys, the {name} one first", route, request(line, *keys, LENGTH, body=BODY),
          400, "invalid_field", "Authorization")
      for name, keys in (("right", (KEY, WRONG)), ("wrong", (WRONG, KEY)))
      for route, line in ((EMIT, EMIT_LINE), (PUT_CHANNEL, MANAGE_LINE))),
    Raw("two content types", EMIT, request(EMIT_LINE, KEY, LENGTH, b"Content-Type: text/plain",
        body=BODY), 415, "unsupported_media_type"),
    Raw("endless chunks", EMIT, request(EMIT_LINE, KEY, CHUNKS,
        body=chunked(limits.BODY_BYTES_MAX)), 413, "body_too_large"),
    Raw("endless chunks", PUT_CHANNEL, request(MANAGE_LINE, KEY, CHUNKS,
        body=chunked(limits.MANAGE_BODY_BYTES_MAX)), 413, "body_too_large"),
    Raw("large body of a stranger", EMIT, request(EMIT_LINE, WRONG, CHUNKS, body=chunked(1 << 22)),
        401, "invalid_credentials"),
    Raw("announced and never sent", EMIT, request(EMIT_LINE, KEY, b"Content-Length: 99999999999"),
        413, "body_too_large"),
    Raw("announced and never sent", PUT_CHANNEL, request(MANAGE_LINE, KEY,
        b"Content-Length: 99999999999"), 413, "body_too_large"),
    Raw("chunked and cut in JSON", EMIT, request(EMIT_LINE, KEY, CHUNKS,
        body=b'2\r\n{"\r\n0\r\n\r\n'), 400, "malformed_json"),
    Raw("key in a foreign alphabet", EMIT, request(EMIT_LINE, b"Authorization: Bearer \xc3\xa9",
        LENGTH, body=BODY), 401, "invalid_credentials"),
    Raw("absolute URL", "GET /v1/streams", request(b"GET http://x/v1/streams HTTP/1.1\r\n", WRONG),
        401, "invalid_credentials"),
    Raw("HTTP/1.0", EMIT, request(EMIT_LINE.replace(b"1.1", b"1.0"), WRONG, LENGTH, body=BODY),
        401, "invalid_credentials"),
    Raw("one long header", "GET /healthz", b"GET /healthz HTTP/1.1\r\nX-A: " + b"a" * 400_000, 431,
        "headers_too_large"),
    Raw("many headers", "GET /healthz", b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 60_000, 431,
        "headers_too_large"),
    Raw("a long URL", "GET /healthz", b"GET /" + b"u" * 400_000, 431, "headers_too_large"),
    Raw("long trailers", EMIT, request(EMIT_LINE, KEY, CHUNKS, body=b"2\r\n[]\r\n0\r\nX: ")
        + b"t" * 400_000, 431, "headers_too_large"),
    Raw("upgrade of a post", EMIT, request(EMIT_LINE, KEY, LENGTH, b"Connection: Upgrade",
        b"Upgrade: websocket", body=BODY), 400, "malformed_json"),
    Raw("foreign host", "GET /v1/streams", FOREIGN,
        400, "bad_request"),
)  # fmt: skip
SLOW = (
    Raw("nothing comes", EMIT, request(EMIT_LINE, KEY, b"Content-Length: 10"),
        408, "request_timeout"),
    Raw("the rest does not come", EMIT, request(EMIT_LINE, KEY, LENGTH, body=BODY[:-1]),
        408, "request_timeout"),
    Raw("no last chunk", EMIT, request(EMIT_LINE, KEY, CHUNKS, body=b"2\r\n[{\r\n"),
        408, "request_timeout"),
    Raw("nothing comes", PUT_CHANNEL, request(MANAGE_LINE, KEY, b"Content-Length: 10"),
        408, "request_timeout"),
    Raw("no last chunk", PUT_CHANNEL, request(MANAGE_LINE, KEY, CHUNKS, body=b"1\r\n{\r\n"),
        408, "request_timeout"),
    Raw("nothing comes", "POST /v1/session", request(b"POST /v1/session HTTP/1.1\r\n",
        b"Content-Length: 10"), 408, "request_timeout"),
)  # fmt: skip
CASES = (*REFUSED, *SLOW)
NO_HTTP = {
    "no request": b"hello\r\n\r\n",
    "NUL": b"\0" * 1_000,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\1" * 500,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "unknown version": b"GET / HTTP/9.9\r\n\r\n",
    "path in UTF-8": request("GET /ä HTTP/1.1\r\n".encode()),
    "path with a space": request(b"GET /v1/ streams HTTP/1.1\r\n"),
    "header without a colon": request(b"GET /v1/streams HTTP/1.1\r\n", b"nonsense"),
    "NUL in a header": request(b"GET /v1/streams HTTP/1.1\r\n", b"X: a\0b"),
    "length that is no number": request(EMIT_LINE, KEY, b"Content-Length: ten", body=BODY),
    "length below 0": request(EMIT_LINE, KEY, b"Content-Length: -1", body=BODY),
    "length beyond 64 bits": request(EMIT_LINE, KEY, b"Content-Length: " + b"9" * 30, body=BODY),
    "two lengths": request(EMIT_LINE, KEY, LENGTH, b"Content-Length: 1", body=BODY),
    "length and chunks": request(EMIT_LINE, KEY, LENGTH, CHUNKS, body=b"0\r\n\r\n"),
    "chunk of no length": request(EMIT_LINE, KEY, CHUNKS, body=b"zz\r\n[]\r\n"),
    "upgrade without a key": request(b"GET /v1/ws HTTP/1.1\r\n", KEY, b"Connection: Upgrade",
                                     b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),
}  # fmt: skip


class Received:
    """Bytes in the place of a socket, for http.client to read an answer from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


async def exchange(world: World, data: bytes, *, timeout_s: float = 10) -> Answer:
    """Send bytes, read one answer and the end of the connection."""
    for name, key in world.keys.items():
        data = data.replace(b"%%(%s)s" % name.encode(), key.encode())
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.hub.web[0].port)
        sending = asyncio.create_task(_write(writer, data))
        received = await reader.read()
        await sending
        writer.close()
    response = http.client.HTTPResponse(Received(received))  # type: ignore[arg-type]
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def check(world: World, case: Raw, *, timeout_s: float = 10) -> None:
    answer = await exchange(world, case.data, timeout_s=timeout_s)
    at = {"field": case.field} if case.field else {}
    assert answer.refused(case.status, case.code)["position"] == at, case.name


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.name} {case.route}")
async def test_bad_request_on_the_wire_is_refused(world: World, case: Raw) -> None:
    await check(world, case)


SILENT = (
    Raw("headers that never end", "GET /healthz", b"GET /healthz HTTP/1.1\r\nHost: x\r\n", 408,
        "request_timeout"),
    Raw("nothing at all", "GET /healthz", b"", 408, "request_timeout"),
)  # fmt: skip


async def test_slow_headers_and_bodies_end_with_408_at_every_kind_of_route(world: World) -> None:
    limit_s = max(limits.BODY_TIMEOUT_S_MAX, limits.HEADERS_TIMEOUT_S_MAX) + 10
    cases = (*SLOW, *SILENT)
    await asyncio.gather(*(check(world, case, timeout_s=limit_s) for case in cases))


@pytest.mark.parametrize("data", NO_HTTP.values(), ids=NO_HTTP)
async def test_malformed_http_is_refused_before_routing(world: World, data: bytes) -> None:
    answer = await exchange(world, data, timeout_s=3)
    assert answer.refused(400, "bad_request")["position"] == {}
    assert world.hub.web[0].is_ready()
