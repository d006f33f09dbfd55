"""uvicorn's HTTP protocol with six things more: what is no HTTP is refused with a problem
document, headers must arrive in time and are bounded, only a GET can become a websocket, a door
that answers for long is told when its reader has gone or the server stops, it is known when a
request is here to its end, and head and body of an answer go out together. Plain module.

Composition root.
"""

import asyncio
import socket
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from eventhub.base import limits
from eventhub.base.errors import BadRequest, EventHubError, HeadersTooLarge, RequestTimeout
from eventhub.base.waiting import set_within
from eventhub.http.messages import Peer


class HubServer(uvicorn.Server):
    """uvicorn's server, which looks once a second whether it is to end, instead of ten times, and
    at once when it is told to.
    """

    _told: asyncio.Event | None = None

    def __init__(self, config: uvicorn.Config, ready: Path | None = None) -> None:
        """`ready`: a file that is made when it serves."""
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready.touch()

    async def main_loop(self) -> None:
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # which writes the header Date again
            await set_within(self._told, 1.0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._told is not None:
            self._loop.call_soon_threadsafe(self._told.set)


class HubHttpProtocol(HttpToolsProtocol):
    """One connection."""

    _late: asyncio.TimerHandle | None = None
    _refused = False
    _moved = False
    _fruitless_bytes = 0

    def connection_made(self, transport: Any) -> None:
        self._peer = Peer(transport)
        super().connection_made(transport)
        self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {"eventhub.peer": self._peer}  # type: ignore[dict-item]
        self._peer.whole = False
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Bytes that bring neither the end of the headers nor a piece of the body are bounded."""
        if self._refused:
            return
        self._moved = False
        super().data_received(data)
        self._fruitless_bytes = 0 if self._moved else self._fruitless_bytes + len(data)
        if self._fruitless_bytes > limits.HEAD_BYTES_MAX:
            error = HeadersTooLarge(bytes_max=limits.HEAD_BYTES_MAX)
            self._refuse(error, b"431 Request Header Fields Too Large")

    def on_body(self, body: bytes) -> None:
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._moved = self._peer.whole = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._moved = True
        self._stop_waiting()
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = self._peer  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        self._peer.lost()

    def shutdown(self) -> None:
        super().shutdown()
        self._peer.stop()

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest(msg), b"400 Bad Request")

    def _should_upgrade(self) -> bool:
        return self.scope.get("method") == "GET" and super()._should_upgrade()

    def _await_headers(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(limits.HEADERS_TIMEOUT_S_MAX, self._headers_late)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _headers_late(self) -> None:
        error = RequestTimeout("The request's headers did not arrive in time; send them at once.")
        self._refuse(error, b"408 Request Timeout")

    def _refuse(self, error: EventHubError, status: bytes) -> None:
        """Answer, and take what still comes for a moment: closing at once would reset the
        connection, and the answer would be lost.
        """
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._stop_waiting()
        body = orjson.dumps(error.problem())
        head = (
            b"HTTP/1.1 %s\r\ncontent-type: application/problem+json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % (status, len(body))
        )
        self.transport.write(head + body)
        self.transport.write_eof()
        self.loop.call_later(limits.ABANDON_S, self.transport.close)
