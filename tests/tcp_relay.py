"""A TCP port that leads to the unix socket of the tests' PostgreSQL: connectors reach databases
over TCP alone.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_PIECE = 1 << 16


class Relay:
    """A port of loopback."""

    def __init__(self, target: str) -> None:
        self.port = 0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def listen(self) -> None:
        """Listen, on the port of before if there was one."""
        self._call(self._listen())

    def stop(self) -> None:
        """Break all connections, and refuse new ones."""
        self._call(self._stop())

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._target)
        ends = {writer, far_writer}
        self._writers |= ends
        try:
            with suppress(asyncio.CancelledError, OSError):  # by `stop`, or an end is gone
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


@contextmanager
def relay_to(socket_path: str) -> Iterator[Relay]:
    """Open a port that leads to a unix socket, in a thread, until the block is left."""
    relay = Relay(socket_path)
    thread = threading.Thread(target=relay._loop.run_forever, daemon=True)
    thread.start()
    relay.listen()
    try:
        yield relay
    finally:
        relay.stop()
        relay._loop.call_soon_threadsafe(relay._loop.stop)
        thread.join()
