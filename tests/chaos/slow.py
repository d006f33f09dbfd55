"""Readers that do not read, on raw sockets with the smallest receive buffer of the kernel.

When the hub has closed the connection, the reader reads the rest: the last frames must be the
request to resume and the close code 4408. Then it resumes from its cursor, and stalls again.
"""

import asyncio
import json
import os
import socket
import struct
from base64 import b64encode
from contextlib import suppress
from urllib.parse import urlsplit

from tests.chaos.hub import HubUnderTest
from tests.chaos.readers import Seen, take
from tests.chaos.until import NeverCame, until

CLOSE_RESUME = 4408
DISCONNECTED = "slow_reader_disconnected"
GIVEN_UP_S_MAX = 60.0
DRAIN_S_MAX = 10.0
TEXT, CLOSE = 1, 8


class SlowReader:
    """A client that stalls again and again. `drip_s`: seconds between two single bytes; None: it
    reads nothing.
    """

    def __init__(self, hub: HubUnderTest, seen: Seen, drip_s: float | None) -> None:
        self.seen = seen
        self.reported = 0  # how often it was asked to resume and got 4408
        self.connections = 0
        self.bytes_read = 0
        self.problems: list[str] = []
        self._hub = hub
        self._drip_s = drip_s
        self._buffer = bytearray()

    async def run(self, key: str) -> None:
        """Stall until cancelled. `key`: of a client with this reader's name, for the hub's log."""
        while True:
            connection = await self._connect(key)
            dripping = asyncio.create_task(self._drip(connection))
            try:
                await self._given_up()
                dripping.cancel()
                await self._drain(connection)
            except NeverCame as error:
                self.problems.append(f"{self.seen.name}: {error}")
            finally:
                dripping.cancel()
                connection.close()

    async def _connect(self, key: str) -> socket.socket:
        where = urlsplit(self._hub.url)
        loop = asyncio.get_running_loop()
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the kernel's least
        connection.setblocking(False)
        await loop.sock_connect(connection, (where.hostname, where.port))
        request = (
            f"GET /v1/ws HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}\r\n"
            f"Authorization: Bearer {key}\r\n\r\n"
        )
        await loop.sock_sendall(connection, request.encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += await loop.sock_recv(connection, 1)
        if not answer.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(answer.decode("latin-1"))
        self._buffer.clear()
        self.connections += 1
        listen = json.dumps(self.seen.request()).encode()
        await loop.sock_sendall(connection, masked(TEXT, listen))
        return connection

    async def _drip(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while self._drip_s is not None:
            self._buffer += await loop.sock_recv(connection, 1)
            self.bytes_read += 1
            await asyncio.sleep(self._drip_s)

    async def _given_up(self) -> None:
        """Wait until the hub's log reports this reader as slow."""
        line = f"client={self.seen.name}"
        known = self._notice_lines(line)
        await until(lambda: self._notice_lines(line) > known, "the hub to give up", GIVEN_UP_S_MAX)

    def _notice_lines(self, line: str) -> int:
        return sum(1 for said in self._hub.lines() if DISCONNECTED in said and line in said)

    async def _drain(self, connection: socket.socket) -> None:
        """Read the rest as fast as possible; check that it ends with the request to resume and the
        close.
        """
        loop = asyncio.get_running_loop()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        code, resumed = 0, False
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(DRAIN_S_MAX):
                while not code and (chunk := await loop.sock_recv(connection, 1 << 16)):
                    self._buffer += chunk
                    self.bytes_read += len(chunk)
                    for kind, payload in frames(self._buffer):
                        if kind == CLOSE:
                            code = struct.unpack("!H", payload[:2])[0]
                        elif kind == TEXT and b'"op":"resume"' in payload[:40]:
                            resumed = True
                        elif kind == TEXT:  # the server also sends pings
                            take(self.seen, payload.decode())
        if code == CLOSE_RESUME and resumed:
            self.reported += 1
        else:
            self.problems.append(f"{self.seen.name}: ended with {code}, asked to resume: {resumed}")


def frames(buffer: bytearray) -> list[tuple[int, bytes]]:
    """Remove and return the whole frames (opcode, payload) at the start of the buffer."""
    found = []
    at = 0
    while len(buffer) - at >= 2:
        size, start = buffer[at + 1] & 0x7F, at + 2
        if size == 126:
            start += 2
        elif size == 127:
            start += 8
        if len(buffer) < start:
            break
        if size > 125:
            size = int.from_bytes(buffer[at + 2 : start])
        if len(buffer) < start + size:
            break
        found.append((buffer[at] & 0x0F, bytes(buffer[start : start + size])))
        at = start + size
    del buffer[:at]
    return found


def masked(opcode: int, payload: bytes) -> bytes:
    """Return a client's frame, with a mask of zeros."""
    size = len(payload)
    head = struct.pack("!BB", 0x80 | opcode, 0x80 | size) if size < 126 else b""
    if size >= 126:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    return head + bytes(4) + payload
