"""The client's side of a websocket, as little of it as counting frames needs. Plain."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable

from tests.benchmarks.load.http import HOST, RequestFailed
from tests.benchmarks.load.jobs import Target

PATH = "/v1/ws"
TEXT, PING, PONG, CLOSE = 0x1, 0x9, 0xA, 0x8


def handshake(target: Target) -> bytes:
    """Return an upgrade request without permessage-deflate: frames arrive uncompressed."""
    headers = {
        "host": f"{HOST}:{target.port}",
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": b64encode(os.urandom(16)).decode(),
    }
    for name in ("authorization", "sec-websocket-protocol"):
        if name in target.headers:
            headers[name] = target.headers[name]
    lines = [f"GET {PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a client's frame, masked with zeros."""
    size = len(payload)
    short = bytes((0x80 | opcode, 0x80 | size)) if size < 126 else b""
    head = short or bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2, "big")
    return head + bytes(4) + payload


class Socket(asyncio.Protocol):
    """A listening socket. `received(count)` is called with the event frames of every chunk."""

    def __init__(
        self, target: Target, listen: str, mark: str, received: Callable[[int], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()  # listening, events follow
        self.failed: asyncio.Future[None] = loop.create_future()
        self.events = 0
        self._target = target
        self._listen = listen.encode()
        self._mark = mark.encode()
        self._received = received
        self._upgraded = False
        self._data = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.transport.write(handshake(self._target))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.failed.done():
            self.failed.set_exception(RequestFailed(f"socket lost: {error}"))

    def data_received(self, data: bytes) -> None:
        if self._data:
            data = self._data + data
        at = 0 if self._upgraded else self._upgrade(data)
        if self._upgraded:
            at = self._frames(data, at)
        self._data = data[at:]

    def _upgrade(self, data: bytes) -> int:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return 0
        if not data.startswith(b"HTTP/1.1 101"):
            self.failed.set_exception(RequestFailed(data[:400].decode("latin-1")))
            self.transport.abort()
            return 0
        self._upgraded = True
        if self._listen:
            self.transport.write(frame(TEXT, self._listen))
        else:
            self.ready.set_result(None)
        return end + 4

    def _frames(self, data: bytes, at: int) -> int:
        """Count the event frames from an offset on; return the offset of the first incomplete
        one.
        """
        size, events, mark = len(data), 0, self._mark
        while size - at >= 2:
            length, begin = data[at + 1], at + 2
            if length == 126:
                begin = at + 4
                length = data[at + 2] << 8 | data[at + 3] if size >= begin else size
            elif length == 127:
                begin = at + 10
                length = int.from_bytes(data[at + 2 : begin], "big") if size >= begin else size
            if begin + length > size:
                break
            if data.startswith(mark, begin):
                events += 1
            else:
                self._other(data[at] & 0xF, data[begin : begin + length])
            at = begin + length
        if events:
            self.events += events
            self._received(events)
        return at

    def _other(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            self.transport.write(frame(PONG, payload))
        elif opcode == CLOSE or b'"op":"error"' in payload:
            if not self.failed.done():
                self.failed.set_exception(RequestFailed(payload.decode("utf-8", "replace")))
        elif b'"op":"listening"' in payload and not self.ready.done():
            self.ready.set_result(None)
