"""The receiver, which no fault touches: a process of the harness, `python -m
tests.chaos.callbacks.sink`.

It accepts callbacks at `/e/NAME`, checks signature and content, answers 200 mostly, and writes
every arrival and every response to a file, in the order in which they happened. It prints its port
and ends when its standard input does. It knows nothing of the hub's tables.
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


class Sink:
    """All endpoints. Lines: `["a", number, at, endpoint, webhook-id, stream, segment, sequence,
    registrations, digest, tried_at, wrong]` for an arrival and `["b", number, at, status]` for its
    response (0: none). Times are by the machine's monotonic clock; `tried_at` is when the event was
    first offered.
    """

    def __init__(self, arrival_file: ArrivalFile, seed: int) -> None:
        self._arrival_file = arrival_file
        self._dice = random.Random(seed)
        self._moods: dict[str, Mood] = {}
        self._keys: dict[str, Webhook] = {}
        self._arrivals = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if request.path == "/endpoints":
            return self._learn(orjson.loads(body))
        name = request.path.removeprefix("/e/")
        self._arrivals += 1
        number = self._arrivals
        mood = self._moods.get(name, Mood())
        choice = mood.choose(self._dice)
        self._arrived(number, name, request, body)
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
            self._keys[name] = Webhook(about["secret"])
            self._moods[name] = Mood(**about["mood"])
        return web.Response()

    def _arrived(self, number: int, name: str, request: web.BaseRequest, body: bytes) -> None:
        at = time.monotonic()
        wrong = self._refuted(name, dict(request.headers), body)
        try:
            found = orjson.loads(body)
            wrong = wrong or content_wrong(found)
            place = [found[field] for field in ("stream", "segment", "sequence", "registrations")]
            tried_at = found["event"]["attributes"]["at"]
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            wrong, place, tried_at = wrong or f"no event: {error!r}", ["", "", 0, []], 0.0
        digest = hashlib.blake2b(body, digest_size=8).hexdigest()
        webhook_id = request.headers.get("webhook-id", "")
        self._arrival_file.write("a", number, at, name, webhook_id, *place, digest, tried_at, wrong)

    def _refuted(self, name: str, headers: dict[str, str], body: bytes) -> str:
        key = self._keys.get(name)
        if key is None:
            return "nobody knows this endpoint"
        try:
            key.verify(body, headers, json_parse=False)
        except WebhookVerificationError as error:
            return f"signature: {error}"
        return ""


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
    server = web.Server(Sink(arrival_file, seed).handle, access_log=None, keepalive_timeout=75)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
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
