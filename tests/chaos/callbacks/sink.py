"""The receiver, which no fault touches: a process of the harness, `python -m
tests.chaos.callbacks.sink`.

It accepts callbacks at `/e/NAME`, checks signature and content, answers 200 mostly, and writes
every arrival and every response to a file, in the order in which they happened. It prints its port,
and a second one that can be closed for a while, and ends when its standard input does. It knows
nothing of the hub's tables.
"""

import argparse
import asyncio
import hashlib
import random
import sys
import time
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
from aiohttp import web
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tests.chaos.callbacks.behaviours import behave
from tests.chaos.events import Name, event_of

FLUSH_S = 0.01
FIELDS = {"stream", "segment", "sequence", "appended_at", "registrations", "event"}
ADDED_BY_HUB = {"source", "node", "content_type", "id"}


class Mood(NamedTuple):
    """The behaviour of an endpoint: shares of its requests; the rest gets 200 at once."""

    status_500: float = 0.0  # answered 500
    closes: float = 0.0  # closed without an answer, before the event is taken
    forgets: float = 0.0  # taken, but the connection ends before the answer
    delays: float = 0.0  # answered 200 after up to `delay_s`
    delay_s: float = 0.5
    behaviour: str = ""  # of all requests, instead of shares: a name of BEHAVIOURS

    def choose(self, dice: random.Random) -> str:
        point = dice.random()
        for name in ("status_500", "closes", "forgets", "delays"):
            point -= getattr(self, name)
            if point < 0:
                return name
        return "takes"


class ArrivalFile:
    """The file, written in blocks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._waiting: list[bytes] = []

    def write(self, *line: Any) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(FLUSH_S, self.flush)
        self._waiting.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def flush(self) -> None:
        self._file.write(b"".join(self._waiting))
        self._waiting.clear()


class Absence:
    """A second port of the sink that can be closed for a while, like that of a machine that is
    away.
    """

    def __init__(self) -> None:
        self.port = 0
        self._runner: web.ServerRunner
        self._site: web.TCPSite | None = None

    async def begin(self, runner: web.ServerRunner) -> None:
        """Open the port, a free one."""
        self._runner = runner
        await self.switch(away=False)

    async def switch(self, *, away: bool) -> None:
        if away and self._site is not None:
            await self._site.stop()
            self._site = None
        elif not away and self._site is None:
            self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
            await self._site.start()
            self.port = self.port or self._runner.addresses[-1][1]

    def concerns(self, request: web.BaseRequest) -> bool:
        """End the connection of a request that came by one opened before; return whether it did."""
        if request.transport is None or self._site is not None:
            return False
        if request.transport.get_extra_info("sockname")[1] != self.port:
            return False
        request.transport.abort()
        return True


class Sink:
    """All endpoints. Lines: `["a", number, at, endpoint, webhook-id, stream, segment, sequence,
    registrations, digest, tried_at, wrong, value]` for an arrival and `["b", number, at, status]`
    for its response (0: none). Times are by the machine's monotonic clock; `tried_at` is when the
    event was first offered; `value` is that of the attribute by which the endpoint is ordered.
    """

    def __init__(self, arrival_file: ArrivalFile, seed: int) -> None:
        self._arrival_file = arrival_file
        self._dice = random.Random(seed)
        self._moods: dict[str, Mood] = {}
        self._order_by: dict[str, str] = {}
        self._keys: dict[str, Webhook] = {}
        self._arrivals = 0
        self.absence = Absence()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if request.path == "/endpoints":
            return self._learn(orjson.loads(body))
        if request.path == "/absence":
            await self.absence.switch(away=orjson.loads(body)["away"])
            return web.Response()
        if self.absence.concerns(request):
            return web.Response(status=500)
        name = request.path.removeprefix("/e/")
        self._arrivals += 1
        number = self._arrivals
        mood = self._moods.get(name, Mood())
        self._arrived(number, name, request, body)
        if mood.behaviour:
            status, response = await behave(mood.behaviour, request, self._dice)
            self._arrival_file.write("b", number, time.monotonic(), status)
            return response
        choice = mood.choose(self._dice)
        if choice == "delays":
            await asyncio.sleep(mood.delay_s * self._dice.random())
        status = {"status_500": 500, "closes": 0, "forgets": 0}.get(choice, 200)
        self._arrival_file.write(
            "b", number, time.monotonic(), 200 if choice == "forgets" else status
        )
        if not status and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 500)

    def _learn(self, known: dict[str, dict[str, Any]]) -> web.Response:
        for name, about in known.items():
            self._moods[name] = Mood(**about["mood"])
            if "secret" in about:
                self._keys[name] = Webhook(about["secret"])
                self._order_by[name] = about["order_by"]
        return web.Response()

    def _arrived(self, number: int, name: str, request: web.BaseRequest, body: bytes) -> None:
        at = time.monotonic()
        wrong = self._refuted(name, dict(request.headers), body)
        try:
            found = orjson.loads(body)
            wrong = wrong or content_wrong(found)
            place = [found[field] for field in ("stream", "segment", "sequence", "registrations")]
            attributes = found["event"]["attributes"]
            tried_at, value = attributes["at"], value_at(attributes, self._order_by.get(name, ""))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            wrong, place = wrong or f"no event: {error!r}", ["", "", 0, []]
            tried_at, value = 0.0, ""
        digest = hashlib.blake2b(body, digest_size=8).hexdigest()
        webhook_id = request.headers.get("webhook-id", "")
        line = (number, at, name, webhook_id, *place, digest, tried_at, wrong, value)
        self._arrival_file.write("a", *line)

    def _refuted(self, name: str, headers: dict[str, str], body: bytes) -> str:
        key = self._keys.get(name)
        if key is None:
            return "nobody knows this endpoint"
        try:
            key.verify(body, headers, json_parse=False)
        except WebhookVerificationError as error:
            return f"signature: {error}"
        return ""


def value_at(attributes: Any, path: str) -> str:
    """Return the value at a dotted path as text; empty if there is none."""
    for name in path.split("."):
        attributes = attributes.get(name, "") if isinstance(attributes, dict) else ""
    return str(attributes)


def content_wrong(found: dict[str, Any]) -> str:
    """Return where an event differs from what the producer created."""
    if "gap" in found:
        return f"a gap, and nothing was dropped: {found['gap']}"
    if set(found) != FIELDS:
        return f"fields {sorted(found)}"
    event = found["event"]
    attributes = event["attributes"]
    made = event_of(Name.parse(attributes["name"]), at=attributes["at"], with_id="id" in event)
    own_id = made.pop("id", None)
    if own_id is not None and {k: event["id"].get(k) for k in own_id} != own_id:
        return f"the id {event['id']} of {attributes['name']}"
    wrong = [name for name, value in made.items() if event.get(name) != value]
    wrong += sorted(set(event) - set(made) - ADDED_BY_HUB)
    return f"{', '.join(wrong)} of {attributes['name']}" if wrong else ""


async def serve(file: IO[bytes], seed: int) -> None:
    arrival_file = ArrivalFile(file)
    sink = Sink(arrival_file, seed)
    server = web.Server(sink.handle, access_log=None, keepalive_timeout=75)
    runner = web.ServerRunner(server, shutdown_timeout=1.0)  # some receivers never answer
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024, reuse_address=True)
    await site.start()
    await sink.absence.begin(runner)
    print(runner.addresses[0][1], sink.absence.port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()
    arrival_file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.callbacks.sink")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with options.file.open("ab", buffering=0) as file:
        asyncio.run(serve(file, options.seed))


if __name__ == "__main__":
    main()
