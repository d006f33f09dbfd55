"""The demo's receiver of callbacks: it verifies each signature and prints the event. Plain module.

It listens on a socket that the supervisor opened, which the demo's zone may always call.
"""

import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson
from aiohttp import web
from eventhub_client.callbacks import UnverifiedCallback, verify

IDS_CACHED_MAX = 10_000  # to recognize a repeated delivery
PRINTED_FIRST = 3  # callbacks printed one by one; later ones are counted

Say = Callable[[str], None]


class Sink:
    """The callbacks received, and the secret that must sign them (without one, all are refused)."""

    def __init__(self, say: Say) -> None:
        self.secret = ""
        self.received = 0
        self._say = say
        self._printed = 0
        self._ids: OrderedDict[str, None] = OrderedDict()

    def take(self) -> int:
        """Return the number of new callbacks since the last call."""
        received, self.received = self.received, 0
        return received

    async def _called(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            delivery = verify(self.secret, request.headers, body)
        except UnverifiedCallback as error:
            return web.Response(status=401, text=str(error))
        if delivery in self._ids:
            return web.Response(text="already received")
        self._ids[delivery] = None
        if len(self._ids) > IDS_CACHED_MAX:
            self._ids.popitem(last=False)
        self.received += 1
        if self._printed < PRINTED_FIRST:
            self._printed += 1
            message = orjson.loads(body)
            event = message["event"]
            text = f"{message['stream']} {message['sequence']}, {event['domain']}:{event['type']}"
            self._say(f"callback, signature verified: {text} for {message['registrations']}")
        return web.Response(text="thank you")

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncIterator[str]:
        """Serve on the socket; yield the URL to call."""
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
