"""The demo's receiver of callbacks: checks each signature and says what it was told. Plain module.

It listens on a socket that the supervisor opened, whose address is the one private address that the
demo's hub may call.
"""

import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson
from aiohttp import web
from eventhub_client.callbacks import UnverifiedCallback, verify

IDS_KEPT_MAX = 10_000  # to tell a repeat from a new delivery
SHOWN_FIRST = 3  # callbacks said one by one; after that they are counted

Say = Callable[[str], None]


class Sink:
    """What came, and under which secret it must be signed (none yet: everything is refused)."""

    def __init__(self, say: Say) -> None:
        self.secret = ""
        self.received = 0
        self._say = say
        self._shown = 0
        self._ids: OrderedDict[str, None] = OrderedDict()

    def take(self) -> int:
        """How many new callbacks came since the last call."""
        received, self.received = self.received, 0
        return received

    async def _called(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            delivery = verify(self.secret, request.headers, body)
        except UnverifiedCallback as error:
            return web.Response(status=401, text=str(error))
        if delivery in self._ids:
            return web.Response(text="known already")
        self._ids[delivery] = None
        if len(self._ids) > IDS_KEPT_MAX:
            self._ids.popitem(last=False)
        self.received += 1
        if self._shown < SHOWN_FIRST:
            self._shown += 1
            told = orjson.loads(body)
            event = told["event"]
            what = f"{told['stream']} {told['sequence']}, {event['domain']}:{event['type']}"
            self._say(f"callback, signature verified: {what} for {told['registrations']}")
        return web.Response(text="thank you")

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncIterator[str]:
        """Answer on the socket; yields the URL to call."""
        application = web.Application(client_max_size=16 * 1024 * 1024)
        application.router.add_post("/callback", self._called)
        runner = web.AppRunner(application, access_log=None, handle_signals=False)
        await runner.setup()
        site = web.SockSite(runner, listener)
        await site.start()
        host, port = listener.getsockname()[:2]
        try:
            yield f"http://{host}:{port}/callback"
        finally:
            await runner.cleanup()
