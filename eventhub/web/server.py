"""uvicorn's HTTP server and protocol with six additions. Plain module.

Invalid HTTP is answered with a problem document. Headers must arrive in time, and are bounded. Only
a GET can become a websocket. A streaming route is notified when its client disconnects or the
server stops. The end of a request's body is known. Head and body of a response are sent together.

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
from eventhub.base.event_loop import wait_until_set
from eventhub.http.messages import Peer


class HubServer(uvicorn.Server):
    """uvicorn's server, which wakes once a second, not ten times, and at once for a signal."""

    _signalled: asyncio.Event | None = None

    def __init__(self, config: uvicorn.Config, ready: Path | None = None) -> None:
        """Create the server. `ready`: a file that it creates when it serves."""
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready.touch()

    async def main_loop(self) -> None:
        self._signalled = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # which updates the header Date
            await wait_until_set(self._signalled, 1.0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._signalled is not None:
            self._loop.call_soon_threadsafe(self._signalled.set)


class HubHttpProtocol(HttpToolsProtocol):
    """One connection of HTTP."""

    _headers_timer: asyncio.TimerHandle | None = None
    _refused = False
    _progressed = False
    _fruitless_bytes = 0  # received since the last progress

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
        """Bound the bytes that bring neither the end of the headers nor a part of the body."""
        if self._refused:
            return
        self._progressed = False
        super().data_received(data)
        self._fruitless_bytes = 0 if self._progressed else self._fruitless_bytes + len(data)
        if self._fruitless_bytes > limits.HEAD_BYTES_MAX:
            error = HeadersTooLarge(bytes_max=limits.HEAD_BYTES_MAX)
            self._refuse(error, b"431 Request Header Fields Too Large")

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._progressed = self._peer.whole = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._progressed = True
        self._cancel_timer()
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = self._peer  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
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
        if self._headers_timer is None:
            timeout_s = limits.HEADERS_TIMEOUT_S_MAX
            self._headers_timer = self.loop.call_later(timeout_s, self._on_headers_timeout)

    def _cancel_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _on_headers_timeout(self) -> None:
        error = RequestTimeout("The request's headers did not arrive in time; send them at once.")
        self._refuse(error, b"408 Request Timeout")

    def _refuse(self, error: EventHubError, status: bytes) -> None:
        """Answer with an error, and go on reading for a moment: closing at once would reset the
        connection, and the answer would be lost.
        """
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._cancel_timer()
        body = orjson.dumps(error.problem())
        head = (
            b"HTTP/1.1 %s\r\ncontent-type: application/problem+json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % (status, len(body))
        )
        self.transport.write(head + body)
        self.transport.write_eof()
        self.loop.call_later(limits.ABANDON_S, self.transport.close)
