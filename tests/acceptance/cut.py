"""A way to the hub that can be cut: a TCP relay on a port of its own, which loses answers on
demand.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.live import LiveHub


class Way:
    """`url` is the hub's through this way. `cut` ends what is open and refuses what comes;
    `mend` takes connections again. `swallow`: the next answer is not passed on; the hook is called
    when it has come, then the connection is dropped. Answers are passed on while `speaking` is set.
    """

    def __init__(self, hub_url: str) -> None:
        self._hub = urlsplit(hub_url)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._port = 0
        self.swallow: Callable[[], None] | None = None
        self.swallowed = 0
        self.speaking = asyncio.Event()
        self.speaking.set()
        self.sent = bytearray()  # by the client, all connections together

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def lead(self, hub_url: str) -> None:
        """Send new connections to another web process."""
        self._hub = urlsplit(hub_url)

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            there, hub = await asyncio.open_connection(self._hub.hostname, self._hub.port)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._there(reader, hub))
                    group.create_task(self._back(there, writer))
            finally:
                hub.close()
        except* (OSError, ConnectionError):
            pass
        finally:
            writer.close()
            self._open.discard(task)

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            self.sent += chunk
            writer.write(chunk)
            await writer.drain()
        raise ConnectionError("the client closed")

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            if self.swallow is not None:
                hook, self.swallow = self.swallow, None
                self.swallowed += 1
                await asyncio.to_thread(hook)
                raise ConnectionError("the answer is lost")
            await self.speaking.wait()
            writer.write(chunk)
            await writer.drain()
        raise ConnectionError("the hub closed")


@asynccontextmanager
async def way(hub: LiveHub, *, web: int = 0, cut: bool = False) -> AsyncIterator[Way]:
    """Yield a way to one web process, which is cut at first on request."""
    made = Way(hub.web[web].url)
    await made.mend()
    if cut:
        await made.cut()
    try:
        yield made
    finally:
        await made.cut()
