"""The websocket server under clients that do not read, or send frames without end."""

import asyncio
import socket
from contextlib import closing
from typing import Any

from eventhub.base import limits
from eventhub.web.websocket import HubWebSocketProtocol
from tests.served_asgi import frame, handshake, served

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

    pings = {"ws_ping_interval": PING_S, "ws_ping_timeout": PING_S}
    async with served(application, **pings) as (address, _):
        with closing(socket.create_connection(address)) as client:
            client.sendall(handshake("/"))
            async with asyncio.timeout(2 * PING_S + limits.ABANDON_S + 8):
                await ended.wait()


async def test_a_message_of_many_frames_takes_the_memory_of_its_bytes() -> None:
    """Regression: a message of empty frames that never ended filled the memory of the process."""
    received: asyncio.Queue[Any] = asyncio.Queue()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        received.put_nowait(await receive())

    async with served(application) as (address, state), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(handshake("/"))
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
