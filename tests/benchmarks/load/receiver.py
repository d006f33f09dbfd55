"""A receiver of callbacks that answers at once and passes on their content. Plain."""

import asyncio
from collections.abc import Callable
from typing import cast

from tests.benchmarks.load.http import HOST

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
Took = Callable[[str, bytes], None]  # path and body


class Receiver(asyncio.Protocol):
    """One connection of the hub's worker."""

    def __init__(self, took: Took) -> None:
        self._took = took
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        while (end := data.find(b"\r\n\r\n")) >= 0:
            head = data[:end]
            lower = head.lower()
            at = lower.find(b"content-length:") + 15
            stop = lower.find(b"\r\n", at)
            whole = end + 4 + int(head[at:stop] if stop > 0 else head[at:])
            if len(data) < whole:
                break
            self._transport.write(OK)
            path = head.split(b" ", 2)[1].decode("latin-1").removeprefix("/")
            self._took(path, data[end + 4 : whole])
            data = data[whole:]
        self._buffer = data


async def receive(port: int, took: Took) -> asyncio.Server:
    """Listen until the server is closed."""
    return await asyncio.get_running_loop().create_server(lambda: Receiver(took), HOST, port)
