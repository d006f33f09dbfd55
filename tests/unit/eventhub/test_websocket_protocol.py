"""The websocket server under clients that do not read, or send frames without end."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from eventhub.base import limits
from eventhub.web.websocket import HubWebSocketProtocol

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PING_S = 0.1  # between pings, and for an answer
UNSENT_BYTES = 16 * 1024 * 1024  # more than the kernel takes


async def test_a_client_that_answers_no_ping_and_reads_nothing_is_dropped() -> None:
    """Its unsent bytes would keep the connection open for ever, and what it has connected."""
    ended = asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": bytes(UNSENT_BYTES)})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        ended.set()

    config = uvicorn.Config(application, ws_ping_interval=PING_S, ws_ping_timeout=PING_S)
    async with served(config) as (address, _):
        with closing(socket.create_connection(address)) as client:
            client.sendall(HANDSHAKE)
            async with asyncio.timeout(2 * PING_S + limits.ABANDON_S + 8):
                await ended.wait()


async def test_a_message_of_many_frames_takes_the_memory_of_its_bytes() -> None:
    """Regression: a message of empty frames that never ended filled the memory of the process."""
    received: asyncio.Queue[Any] = asyncio.Queue()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        received.put_nowait(await receive())

    async with served(uvicorn.Config(application)) as (address, state), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(frame(0x01, b"be") + frame(0x00, b"") * 5_000 + frame(0x00, b"gi"))
        writer.write(frame(0x89, b"ping"))
        assert await reader.readexactly(6) == b"\x8a\x04ping"  # all before it was handled
        [protocol] = state.connections
        assert isinstance(protocol, HubWebSocketProtocol)
        assert len(protocol.frames) < 2_000
        writer.write(frame(0x80, b"n"))
        assert (await received.get())["text"] == "begin"
        writer.close()


def frame(first: int, data: bytes) -> bytes:
    """Return a frame of a client, masked with zeros; `first`: its first byte."""
    return bytes((first, 0x80 | len(data), 0, 0, 0, 0)) + data


@asynccontextmanager
async def served(config: uvicorn.Config) -> AsyncIterator[tuple[Any, ServerState]]:
    """Serve websockets; yield the address, and the state of the server."""
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: HubWebSocketProtocol(config=config, server_state=state, app_state={}), "127.0.0.1"
    )
    async with server:
        yield server.sockets[0].getsockname(), state
