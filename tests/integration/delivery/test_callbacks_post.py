"""Single requests to receivers of every kind: hostile, slow, redirecting, at refused addresses."""

import asyncio
import gc
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from delivery.callbacks.body import RequestContent
from delivery.callbacks.client import HttpClient, HttpConnection
from delivery.callbacks.guard import Guard
from delivery.callbacks.post import PostResult, post, target_of
from delivery.callbacks.signatures import signer
from eventhub.base import limits
from registrations.endpoints.addresses import parse_allowed
from tests.busy import stretched
from tests.integration.callbacks_world import LOOPBACK, OK, Posted, answer, receiver, until

SIGNERS = [signer("v1", bytes(32))]
JSON = "content-type: application/json\r\n"
REFUSED = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00::1]",
    "[ff02::1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::1]", "[2001:db8::1]",
    "[::127.0.0.1]", "localhost",
]  # fmt: skip


@asynccontextmanager
async def client(*allow: str) -> AsyncIterator[HttpClient]:
    guard = Guard(parse_allowed(allow))
    made = HttpClient(guard)
    try:
        yield made
    finally:
        made.close()
        guard.close()


async def post_to(url: str, allow: Sequence[str] = LOOPBACK, body: bytes = b"{}") -> PostResult:
    async with client(*allow) as made:
        return await post(made, target_of(url, SIGNERS, "z"), "msg_1", RequestContent(JSON, body))


@pytest.mark.parametrize("host", REFUSED)
async def test_an_address_that_may_not_be_called_is_refused(host: str) -> None:
    ended = await post_to(f"http://{host}:9/", allow=())
    assert (ended.outcome.code, ended.outcome.status) == ("refused_address", None)


async def test_nothing_is_sent_to_a_listener_at_a_refused_address() -> None:
    async with receiver() as sink:
        assert (await post_to(sink.url, allow=("10.0.0.0/8",))).outcome.code == "refused_address"
        port = sink.port
        assert (await post_to(sink.url, allow=(f"127.0.0.1:{port + 1}",))).outcome.code == (
            "refused_address"
        )
        assert sink.connections == 0
        assert (await post_to(sink.url, allow=(f"127.0.0.1:{port}",))).outcome.code == "delivered"
        by_name = sink.url.replace("127.0.0.1", "localhost")
        assert (await post_to(by_name, allow=("localhost",))).outcome.code == "delivered"
        assert (await post_to(sink.url, allow=("localhost",))).outcome.code == "refused_address"


async def test_a_name_that_changes_between_look_ups_is_checked_where_it_is_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name server is the outside world: it returns an allowed address, then another."""
    said = iter(["127.0.0.1", "127.0.0.2"])

    def look_up(host: str, port: Any, **more: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(said), 0))]

    async with receiver() as sink:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        url = f"http://rebind.example:{sink.port}/"
        outcomes = [(await post_to(url, allow=("127.0.0.1",))).outcome.code for _ in range(2)]
    assert outcomes == ["delivered", "refused_address"]
    assert sink.connections == 1


async def test_a_redirect_is_not_followed() -> None:
    async with receiver() as other:
        moved = answer("307 Temporary Redirect", f"location: {other.url}")
        async with receiver(lambda _: moved) as sink:
            ended = await post_to(sink.url)
    assert (ended.outcome.code, ended.outcome.status) == ("redirect", 307)
    assert other.posted == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as proxy, receiver() as sink:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await post_to(sink.url)).outcome.code == "delivered"
        assert proxy.connections == 0


async def test_a_cookie_is_not_sent_back() -> None:
    async with receiver(lambda _: answer("200 OK", "set-cookie: a=b")) as sink:
        async with client(*LOOPBACK) as made:
            for _ in range(2):
                target = target_of(sink.url, SIGNERS, "z")
                await post(made, target, "msg_1", RequestContent(JSON, b"{}"))
        assert len(sink.posted) == 2
        assert sink.connections == 1
        assert all("cookie" not in posted.headers for posted in sink.posted)


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * limits.CALLBACK_HEADERS_BYTES_MAX + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x" * 2 * limits.CALLBACK_HEADERS_BYTES_MAX,
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    ],
    ids=["no HTTP", "long header", "many headers", "endless header", "two lengths"],
)
async def test_unbounded_or_malformed_http_is_a_failed_attempt(sent: bytes) -> None:
    async with receiver(lambda _: sent) as sink:
        assert (await post_to(sink.url)).outcome.code == "protocol"


async def test_only_the_start_of_an_endless_body_is_read() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n"
    async with receiver(lambda _: head + b"x" * 10_000_000) as sink:
        ended = await post_to(sink.url)
    assert ended.outcome.code == "delivered"
    assert len(ended.attempt.response) < 2 * limits.CALLBACK_ANSWER_CHARS_STORED_MAX + 10


async def test_a_body_that_never_ends_does_not_change_the_outcome() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nx"
    async with receiver(lambda _: head) as sink:
        began_s = time.monotonic()
        assert (await post_to(sink.url)).outcome.code == "delivered"
        assert time.monotonic() - began_s < limits.CALLBACK_BODY_S_MAX + stretched(2.0)


async def test_an_interim_response_is_skipped() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    async with receiver(lambda _: hints + answer("503 Busy")) as sink:
        ended = await post_to(sink.url)
    assert (ended.outcome.code, ended.outcome.status) == ("status", 503)


async def test_a_response_of_a_byte_a_second_times_out() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" + b"x" * 1_000:
            writer.write(bytes([byte]))
            await asyncio.sleep(1.0)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        ended = await post_to(f"http://127.0.0.1:{port}/")
    assert ended.outcome.code == "timeout"
    assert ended.attempt.response == "no response in time"
    assert ended.attempt.duration_ms < (limits.CALLBACK_TIMEOUT_S_MAX + 2) * 1000


async def test_a_reused_connection_that_was_closed_costs_no_attempt() -> None:
    connections = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(OK)
        if len(connections) == 1:
            await reader.readuntil(b"\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    async with server, client(*LOOPBACK) as made:
        target = target_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", SIGNERS, "z")
        for _ in range(2):
            assert (
                await post(made, target, "msg_1", RequestContent(JSON, b"{}"))
            ).outcome.code == "delivered"
    assert len(connections) == 2


@pytest.mark.parametrize(
    ("sent", "scheme"),
    [
        (b"", "http"),
        (b"HTTP/1.1 200 OK\r\nconten", "http"),
        (b"SSH-2.0-OpenSSH\r\n", "http"),
        (answer("200 OK", "connection: close"), "http"),
        (OK, "http"),
        (b"no TLS\r\n", "https"),
    ],
    ids=["no answer", "half of one", "no HTTP", "the last answer", "an answer", "no TLS"],
)
def test_a_closed_connection_leaves_no_garbage(sent: bytes, scheme: str) -> None:
    """Each connection left a reference cycle with its parser. A worker collects its oldest garbage
    after some 10,000 of these, so a worker whose receivers do not keep connections alive grew by
    tens of megabytes. The event loop is the worker's: asyncio's own leaves a cycle for each failed
    handshake.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(sent)
        writer.close()

    async def posting() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server, client(*LOOPBACK) as made:
            port = server.sockets[0].getsockname()[1]
            target = target_of(f"{scheme}://127.0.0.1:{port}/", SIGNERS, "z")
            for _ in range(3):
                await post(made, target, "msg_1", RequestContent(JSON, b"{}"))
        await until(
            lambda: not any(isinstance(each, HttpConnection) for each in gc.get_objects()), 5
        )

    gc.collect()
    gc.disable()
    try:
        uvloop.run(posting())
    finally:
        gc.enable()


async def test_failures_to_connect_have_their_outcomes() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert (await post_to(f"http://127.0.0.1:{port}/")).outcome.code == "connection"
    assert (await post_to("http://no-such-host.invalid/")).outcome.code == "unknown_host"

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no TLS\r\n")

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await post_to(f"https://127.0.0.1:{port}/")).outcome.code == "tls"


async def test_the_request_follows_the_url() -> None:
    async with receiver() as sink:
        ended = await post_to(f"http://127.0.0.1:{sink.port}/a%20b?c=d", body=b'{"a":1}')
        [posted] = sink.posted
    assert isinstance(posted, Posted)
    assert (posted.path, posted.body) == ("/a%20b?c=d", b'{"a":1}')
    assert posted.headers["host"] == f"127.0.0.1:{sink.port}"
    lines = "POST /a%20b?c=d\ncontent-type: application/json\ncontent-length: 7\nwebhook-id: msg_1"
    assert ended.attempt.request.startswith(lines)
    assert "signature" not in ended.attempt.request
