"""Receivers that fail, each in its own way, next to the healthy ones: endpoints of the hub under
load, with a registration each. At rest they are well, so that nothing may be missing there either.
"""

import asyncio
import socket
import ssl
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.certificates import Authority
from tests.chaos.callbacks.receivers import Endpoint, SinkProcess, ask, create_endpoints, teach
from tests.chaos.callbacks.sink import Mood
from tests.chaos.hub import HubUnderTest

AWAY_S, BACK_S = 300.0, 120.0
PATIENCE_S = 60.0
# longer than a run, without the default's hours: a failing endpoint has its circuit breaker
SCHEDULE = [1, 2, 4, 8, 16, *[120] * 25]
REQUESTED: dict[str, Any] = {  # one event of 24
    "streams": ["gamma"],
    "type": "tick",
    "attributes": {"size": 3, "color": "red"},
}
BY_STREAM = Endpoint(ordered=True, changing=False, retry_schedule=SCHEDULE)
BY_KEY = BY_STREAM._replace(order_by="place.city")
PARALLEL = BY_STREAM._replace(ordered=False)
# the behaviour is that of tests/chaos/callbacks/behaviours.py, or of the URL
BEHAVING = {
    "slow": BY_KEY,
    "hangs": PARALLEL,
    "resets": PARALLEL,
    "fails": BY_KEY,
    "throttles": BY_STREAM,
    "redirects": PARALLEL,
    "huge": PARALLEL,
    "drips": BY_STREAM,
}
ELSEWHERE = {"refuses": PARALLEL, "wrong-tls": BY_STREAM, "absent": BY_KEY}


class SickReceivers:
    """The receivers of one hub. `create` them; then they are sick until `make_well`."""

    def __init__(self, hub: HubUnderTest, sink: SinkProcess, http: aiohttp.ClientSession) -> None:
        self.ids: dict[str, int] = {}
        self.registrations: list[int] = []
        self._hub = hub
        self._sink = sink
        self._http = http
        self._urls: dict[str, str] = {}
        self._stack = AsyncExitStack()

    @property
    def lanes(self) -> list[str]:
        """The names of those with ordered lanes."""
        return [name for name, one in {**BEHAVING, **ELSEWHERE}.items() if one.ordered]

    async def create(self) -> None:
        """Create the endpoints and a registration of each."""
        closed = socket.socket()  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        self._stack.callback(closed.close)
        self._urls = {
            "refuses": f"http://127.0.0.1:{closed.getsockname()[1]}/e/refuses",
            "wrong-tls": f"https://127.0.0.1:{await self._listen_for_tls()}/e/wrong-tls",
            "absent": f"{self._sink.absent_url}/e/absent",
        }
        endpoints = {
            **{name: one._replace(mood=Mood(behaviour=name)) for name, one in BEHAVING.items()},
            **{name: one._replace(url=self._urls[name]) for name, one in ELSEWHERE.items()},
        }
        url = self._hub.url
        self.ids = await create_endpoints(self._http, url, self._sink.url, endpoints)
        bodies = [{**REQUESTED, "endpoint": each} for each in self.ids.values()]
        made = await ask(self._http, "POST", f"{url}/v1/registrations", bodies)
        self.registrations = [item["id"] for item in made["items"]]

    async def _listen_for_tls(self) -> int:
        """Listen with a certificate by an authority that nobody knows; return the port."""
        certificate, key = Authority("nobody's authority").issue("receiver.test")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            chain, private = Path(folder) / "chain.pem", Path(folder) / "key.pem"
            chain.write_text(certificate)
            private.write_text(key)
            context.load_cert_chain(chain, private)
        server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0, ssl=context)
        self._stack.push_async_callback(_close, server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def alternate(self) -> None:
        """Let the absent receiver be away and come back, until cancelled."""
        while True:
            await self._sink.switch(self._http, away=True)
            await asyncio.sleep(AWAY_S)
            await self._sink.switch(self._http, away=False)
            await asyncio.sleep(BACK_S)

    async def make_well(self) -> None:
        """Let all of them answer 200, where the hub can reach them, and change every endpoint: the
        hub calls it at once then.
        """
        await teach(self._http, self._sink.url, {n: {"mood": Mood()._asdict()} for n in BEHAVING})
        await self._sink.switch(self._http, away=False)
        for name in self.ids:
            elsewhere = name in ("refuses", "wrong-tls")
            url = self._urls.get(name, f"{self._sink.url}/e/{name}")
            url = f"{self._sink.url}/e/{name}" if elsewhere else url
            await self._change(name, {"url": url, "description": "well"})

    async def make_sick(self) -> None:
        """Let all of them fail again."""
        moods = {name: {"mood": Mood(behaviour=name)._asdict()} for name in BEHAVING}
        await teach(self._http, self._sink.url, moods)
        for name in ("refuses", "wrong-tls"):
            await self._change(name, {"url": self._urls[name], "description": "sick"})

    async def _change(self, name: str, body: dict[str, Any]) -> None:
        """Change an endpoint; repeat it while a process of the hub is being started again."""
        url = f"{self._hub.url}/v1/endpoints/{self.ids[name]}"
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(aiohttp.ClientError, RuntimeError):
                    await ask(self._http, "PATCH", url, body)
                    return
                await asyncio.sleep(0.2)

    async def close(self) -> None:
        await self._stack.aclose()


async def _close(server: asyncio.Server) -> None:
    server.close()
