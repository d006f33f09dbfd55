"""The websocket server under a client that does not read."""

import asyncio
import socket
from contextlib import closing
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
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: HubWebSocketProtocol(config=config, server_state=state, app_state={}), "127.0.0.1"
    )
    async with server:
        with closing(socket.create_connection(server.sockets[0].getsockname())) as client:
            client.sendall(HANDSHAKE)
            async with asyncio.timeout(2 * PING_S + limits.ABANDON_S + 8):
                await ended.wait()
