"""uvicorn's HTTP server and protocol with some additions. Plain module.

Invalid HTTP is answered with a problem document. Headers must arrive in time, and are bounded. Only
a GET can become a websocket. A streaming route is notified when its client disconnects or the
server stops. The end of a request's body is known. Head and body of a response are sent together.
Pipelined requests wait unread.

Composition root.
"""

import asyncio
import socket
import time
from collections.abc import Sized
from email.utils import formatdate
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from eventhub.base import limits
from eventhub.base.errors import BadRequest, EventHubError, HeadersTooLarge, RequestTimeout
from eventhub.http.messages import Headers, Peer


class DatedServerState(ServerState):
    """uvicorn's state, of which the header Date is formatted when a response needs it, so that
    nothing wakes each second.
    """

    _dated_s = 0

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        now_s = int(time.time())
        if now_s != self._dated_s:
            self._dated_s = now_s
            self._headers = [(b"date", formatdate(now_s, usegmt=True).encode())]
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Ignore the empty list that uvicorn begins with."""


class HubServer(uvicorn.Server):
    """uvicorn's server, woken by a signal, where uvicorn looks for one ten times a second."""

    _signalled: asyncio.Event | None = None

    def __init__(self, config: uvicorn.Config, ready: Path | None = None) -> None:
        """Create the server. `ready`: a file that it creates when it serves."""
        super().__init__(config)
        self.server_state = DatedServerState()
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready.touch()

    async def main_loop(self) -> None:
        self._signalled = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if not self.should_exit:
            await self._signalled.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._signalled is not None:
            self._loop.call_soon_threadsafe(self._signalled.set)


class HubCycle(RequestResponseCycle):
    """One request and its response. A response of known length is written at once, head and body
    together: a system call costs more than all the rest of a short response. uvicorn sends all
    others.

    A response whose head is not written yet has not started: if the application fails then, uvicorn
    answers with status 500.
    """

    _head = b""  # not written yet

    async def send(self, message: Any) -> None:
        if not self.response_started and message["type"] == "http.response.start":
            self._head = self._complete_head(message)
            if self._head:
                return
        elif self._head:
            head, self._head = self._head, b""
            self.response_started = True
            self.waiting_for_100_continue = False
            if self._send_whole(head, message):
                return
        await super().send(message)

    def _complete_head(self, message: Any) -> bytes:
        """Return the status line and headers; empty if the length of the body is not known, or
        uvicorn has to look at the headers.
        """
        self.expected_content_length, self.chunked_encoding = 0, None
        if self.scope["method"] == "HEAD" or self.access_log or self.disconnected:
            return b""
        headers = [*self.default_headers, *message.get("headers", ())]
        length = -1
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name.lower() in _SPECIAL:
                return b""
        if length < 0:
            return b""
        self.expected_content_length, self.chunked_encoding = length, False
        if not self.keep_alive:
            headers.append((b"connection", b"close"))
        return head_of(message["status"], headers)

    def _send_whole(self, head: bytes, message: Any) -> bool:
        """Send the head, with the body if it is complete; return whether it is."""
        if self.disconnected:
            return True
        body = message.get("body", b"")
        if (
            message["type"] != "http.response.body"
            or message.get("more_body")
            or len(body) != self.expected_content_length
            or self.flow.write_paused
        ):
            self.transport.write(head)
            return False
        self.transport.write(head + body)
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True


def head_of(status: int, headers: Headers) -> bytes:
    """Return the status line and headers of a response. Raises RuntimeError for a line break in a
    header.
    """
    lines = [b"%b: %b\r\n" % header for header in headers]
    head = b"".join((STATUS_LINE[status], *lines, b"\r\n"))
    breaks = len(lines) + 2
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks:
        raise RuntimeError("a header contains a line break")
    return head


_SPECIAL = (b"connection", b"transfer-encoding", b"content-length")  # those of uvicorn
_PARSED_BYTES = 4 * 1024  # parsed at a time, but for a body: up to 200 requests, which take 1 MB


class _HubFlow(FlowControl):
    """Reads nothing while requests wait for the answers to others before them."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class HubHttpProtocol(HttpToolsProtocol):
    """One connection of HTTP.

    A parsed request takes twenty times its bytes, and uvicorn reads on after each answer: the
    memory of a process was all that bounded pipelined requests. So data are parsed only until a
    request has to wait for the answer to another one; the rest waits as it came.
    """

    _headers_timer: asyncio.TimerHandle | None = None
    _in_headers = False
    _refused = False
    _refusal = b""  # the error that ends the connection
    _progressed = False
    _fruitless_bytes = 0  # received since the last progress
    _unparsed = b""  # received while requests wait
    _body_left = 0  # bytes of the present request's body; 0 if it is chunked

    def connection_made(self, transport: Any) -> None:
        self._peer = Peer(transport)
        super().connection_made(transport)
        self.flow = _HubFlow(transport, self.pipeline)
        self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {"eventhub.peer": self._peer}  # type: ignore[dict-item]
        self._peer.whole = False
        self._in_headers = True

    def data_received(self, data: bytes) -> None:
        """Parse data until a request waits for the answer to another one."""
        data, self._unparsed = self._unparsed + data, b""
        at = 0
        while at < len(data) and not (self.pipeline or self._refused):
            size = max(_PARSED_BYTES, self._body_left)
            self._parse(data[at : at + size])
            at += size
            if self not in self.connections:  # it is a websocket's now
                return
        if self.pipeline:
            self._unparsed = data[at:]
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """Start the next request; parse more if no other one waits."""
        is_last = not self.pipeline
        super().on_response_complete()
        if self._refusal and is_last:
            self._end()
        elif not (self.pipeline or self.transport.is_closing()):
            self.flow.resume_reading()
            if self._unparsed:
                self.data_received(b"")

    def _parse(self, data: bytes) -> None:
        """Bound the bytes that bring neither the end of the headers nor a part of the body."""
        self._progressed = False
        super().data_received(data)
        if self._in_headers:
            self._await_headers()
        self._fruitless_bytes = 0 if self._progressed else self._fruitless_bytes + len(data)
        if self._fruitless_bytes > limits.HEAD_BYTES_MAX:
            error = HeadersTooLarge(bytes_max=limits.HEAD_BYTES_MAX)
            self._refuse(error, b"431 Request Header Fields Too Large")

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        self._body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._progressed = self._peer.whole = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._progressed = True
        self._in_headers = False
        self._body_left = int(dict(self.headers).get(b"content-length", 0))
        self._cancel_timer()
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.__class__ = HubCycle  # uvicorn has no setting for it
            self.cycle.transport = self._peer  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self.pipeline.clear()
        self._unparsed = b""
        super().connection_lost(exc)
        self._peer.lost()
        self._release()

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        self._release()

    def shutdown(self) -> None:
        super().shutdown()
        self._peer.stop()

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest(msg), b"400 Bad Request")

    def _release(self) -> None:
        """Drop what refers to this protocol: it serves no longer, and needs no garbage collection
        then.
        """
        self.parser = self.cycle = None  # type: ignore[assignment]

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
        """Answer with an error, once the requests before are answered."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._cancel_timer()
        body = orjson.dumps(error.problem())
        head = (
            b"HTTP/1.1 %s\r\ncontent-type: application/problem+json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % (status, len(body))
        )
        self._refusal = head + body
        waits = self.cycle is not None and not (
            self.cycle.response_complete or self.cycle.more_body
        )
        if self.pipeline and self.pipeline[0][0].more_body:  # the refused request
            self.pipeline.popleft()
            waits = True
        if not waits:
            self._end()

    def _end(self) -> None:
        """Send the error, and go on reading for a moment: closing at once would reset the
        connection, and the answer would be lost.
        """
        if self.transport.is_closing():
            return
        self.transport.write(self._refusal)
        self.transport.write_eof()
        self.loop.call_later(limits.ABANDON_S, self.transport.close)
