"""What the HTTP server writes to a connection: a response of known length at once, a stream in
parts.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
import uvicorn
from uvicorn.server import ServerState

from eventhub.http.messages import (
    Headers,
    Incoming,
    Receive,
    Response,
    Scope,
    Send,
    StreamingResponse,
    peer_of,
    send_response,
    send_stream,
)
from eventhub.web.server import HubHttpProtocol

REQUEST = b"GET / HTTP/1.1\r\nhost: hub\r\n"
LENGTH_3: Headers = [(b"content-length", b"3")]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Recorded(asyncio.Transport):
    """A transport that keeps what each write was given, also after its end."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data:
            self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class Served:
    """A connection on which the server has received a request for an application."""

    def __init__(self, app: App, headers: bytes = b"") -> None:
        self.transport = Recorded()
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
        )
        config.load()
        self._state = ServerState()
        self.protocol = HubHttpProtocol(config, self._state, {})
        self.protocol.connection_made(self.transport)
        self.protocol.data_received(REQUEST + headers + b"\r\n")

    async def answer(self) -> list[bytes]:
        """Wait until the application has ended; return what was written."""
        await asyncio.gather(*self._state.tasks)
        return self.transport.writes


def streams(body: AsyncGenerator[bytes, None], headers: Headers) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        peer = peer_of(scope)
        incoming = Incoming(receive, peer)
        await send_stream(send, StreamingResponse(200, body, headers), incoming, peer)

    return app


async def chunks() -> AsyncGenerator[bytes, None]:
    yield b"o"
    yield b"ne"


@pytest.mark.parametrize("ends", [False, True])
async def test_head_and_body_of_an_answer_are_one_write(*, ends: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_response(send, Response(200, b"body", []), Incoming(receive, peer_of(scope)))

    served = Served(app, b"connection: close\r\n" if ends else b"")
    [written] = await served.answer()
    head, body = written.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-length: 4" in head
    assert body == b"body"
    assert served.transport.closed is ends


async def test_a_stream_is_written_in_chunks() -> None:
    head, *pieces = await Served(streams(chunks(), [])).answer()
    assert b"\r\ntransfer-encoding: chunked\r\n" in head
    assert pieces == [b"1\r\no\r\n", b"2\r\nne\r\n", b"0\r\n\r\n"]


async def test_a_stream_of_known_length_is_written_in_parts() -> None:
    head, *pieces = await Served(streams(chunks(), LENGTH_3)).answer()
    assert b"\r\ncontent-length: 3\r\n" in head
    assert pieces == [b"o", b"ne"]


@pytest.mark.parametrize("headers", [[], LENGTH_3], ids=["chunked", "known length"])
async def test_a_stream_that_fails_at_its_first_chunk_has_begun_and_is_cut_short(
    headers: Headers,
) -> None:
    async def failing() -> AsyncGenerator[bytes, None]:
        served.protocol.connection_lost(None)  # which ends the wait after the abort
        raise OSError("the file was altered")
        yield b""

    served = Served(streams(failing(), headers))
    [head] = await served.answer()
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.endswith(b"\r\n\r\n")
    assert served.transport.closed


async def test_an_application_that_fails_before_a_body_of_known_length_is_answered_with_500() -> (
    None
):
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": LENGTH_3})
        raise OSError("no body")

    written = b"".join(await Served(app).answer())
    assert written.startswith(b"HTTP/1.1 500 ")
    assert b"\r\ncontent-length: 21\r\n" in written
    assert written.endswith(b"\r\n\r\nInternal Server Error")


async def test_nothing_is_written_to_a_connection_that_was_lost() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": LENGTH_3})
        served.protocol.connection_lost(None)
        await send({"type": "http.response.body", "body": b"one"})

    served = Served(app)
    assert await served.answer() == []
