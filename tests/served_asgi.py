"""The hub's server in the test's own process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from eventhub.web.quick_protocol import QuickHttpProtocol
from eventhub.web.websocket import HubWebSocketProtocol


def handshake(path: str, key: str = "") -> bytes:
    """Return the request that opens a websocket."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"authorization: Bearer {key}\r\nsec-websocket-extensions: permessage-deflate\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()


def frame(first: int, data: bytes) -> bytes:
    """Return a frame of a client, masked with zeros; `first`: its first byte."""
    return bytes((first, 0x80 | len(data), 0, 0, 0, 0)) + data


@asynccontextmanager
async def served(application: Any, **settings: Any) -> AsyncIterator[tuple[Any, ServerState]]:
    """Serve an ASGI application; yield the address, and the state of the server. `settings`: of
    uvicorn.
    """
    protocols: dict[str, Any] = {"http": QuickHttpProtocol, "ws": HubWebSocketProtocol}
    config = uvicorn.Config(application, log_level="warning", **protocols, **settings)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: QuickHttpProtocol(config=config, server_state=state, app_state={}), "127.0.0.1"
    )
    async with server:
        yield server.sockets[0].getsockname(), state
