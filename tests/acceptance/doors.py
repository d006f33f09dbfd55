"""Every way to listen, as one kind of iterator: what a contract says is tried through all of them.

A door gives what its reader is told, event by event, and raises `Refused` for anything else that
ends it. Doors that answer in pieces (pages, lines) are asked again and again from their cursor, and
check on the way that `prev` goes on from it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

import aiohttp
from eventhub_client.types import At, Cursor, HubProblem

from delivery.listening.catchup import CatchUp
from delivery.listening.in_process import LocalHub
from delivery.listening.listener import Sources
from delivery.listening.record import recording
from eventhub.access.authorizer import Authorizer
from eventhub.base.clock import SystemClock
from eventhub.event import event_pb2
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.log import Log
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from registrations.interest.live import Closures
from tests.acceptance.wire import JSON, PROTOBUF, session, until
from tests.live import LiveHub

LINES, FRAMES = "application/x-ndjson", "application/x-protobuf"
SSE, PAGE = "text/event-stream", "application/json"
_WAIT_S = 2  # a poll of the tests
_LIVENESS = {0: "live", 1: "recovery", 2: "playback"}


class Told(NamedTuple):
    """One event as a reader is told of it, whatever the door."""

    sequence: int
    prev: int
    liveness: str
    segment: str
    event: dict[str, Any]
    registrations: tuple[int, ...] = ()

    @property
    def cursor(self) -> str:
        return f"{self.segment}:{self.sequence}"


class Refused(Exception):
    """The hub's refusal: its problem document, or the message that stands for it."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.code = problem["code"]


class Asked(NamedTuple):
    """A listen to be begun. `start` is text as in URLs."""

    hub: LiveHub
    key: str
    stream: str
    start: str = "oldest"
    wanted: dict[str, Any] = {}  # noqa: RUF012 - never changed
    web: int = 1


Door = Callable[[Asked], AsyncIterator[Told]]


def subscription(message: dict[str, Any]) -> Told:
    return Told(
        message["sequence"],
        message["prev"],
        message["liveness"],
        message["segment"],
        message["event"],
        tuple(message.get("registrations", ())),
    )


def told_of_frame(frame: event_pb2.EventFrame) -> Told:
    return Told(
        frame.sequence,
        frame.prev,
        _LIVENESS[frame.liveness],
        frame.segment,
        json.loads(event_json(decode(frame.event))),
        tuple(frame.registrations),
    )


async def socket_json(asked: Asked) -> AsyncIterator[Told]:
    async for told in _socket(asked, JSON):
        yield told


async def socket_protobuf(asked: Asked) -> AsyncIterator[Told]:
    async for told in _socket(asked, PROTOBUF):
        yield told


async def _socket(asked: Asked, subprotocol: str) -> AsyncIterator[Told]:
    async with session(asked.hub, asked.key, web=asked.web, subprotocol=subprotocol) as reader:
        await reader.say(
            "listen", listener="a", stream=asked.stream, **asked.wanted, **{"from": asked.start}
        )
        while True:
            message = await reader.hear()
            if "frame" in message:
                yield told_of_frame(message["frame"])
            elif message["op"] == "event":
                yield subscription(message)
            elif message["op"] in ("error", "gap", "segment_mismatch"):
                raise Refused(message)


async def server_sent(asked: Asked) -> AsyncIterator[Told]:
    async for message in events_of(asked):
        if message["op"] == "event":
            yield subscription(message)
        elif message["op"] in ("error", "gap", "segment_mismatch"):
            raise Refused(message)


async def events_of(asked: Asked, **headers: str) -> AsyncIterator[dict[str, Any]]:
    """The messages of one connection of server-sent events, each with its id."""
    async with aiohttp.ClientSession() as http, _get(http, asked, SSE, headers=headers) as response:
        await _check(response)
        fields: dict[str, str] = {}
        async for line in response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                yield {**json.loads(fields["data"]), "id": fields.get("id")}
                fields = {}


async def long_poll(asked: Asked) -> AsyncIterator[Told]:
    async for told in _pages(asked, timeout=_WAIT_S):
        yield told


async def history(asked: Asked) -> AsyncIterator[Told]:
    async for told in _pages(asked, limit=7):
        yield told
        await asyncio.sleep(0)


async def _pages(asked: Asked, **how: int) -> AsyncIterator[Told]:
    async with aiohttp.ClientSession() as http:
        while True:
            async with _get(http, asked, PAGE, how) as response:
                await _check(response)
                page = await response.json()
            for item in page["events"]:
                yield subscription(item)
            cursor = page["cursor"]
            asked = asked._replace(start=f"{cursor['segment']}:{cursor['sequence']}")


async def lines(asked: Asked) -> AsyncIterator[Told]:
    async with aiohttp.ClientSession() as http:
        while True:
            async with _get(http, asked, LINES, {"timeout": _WAIT_S}) as response:
                await _check(response)
                async for line in response.content:
                    message = json.loads(line)
                    if "event" in message:
                        yield subscription(message)
            asked = asked._replace(start=_end(message))


async def protobuf(asked: Asked) -> AsyncIterator[Told]:
    async with aiohttp.ClientSession() as http:
        while True:
            async with _get(http, asked, FRAMES, {"timeout": _WAIT_S}) as response:
                await _check(response)
                body = await response.read()
            for frame in server_frames(body):
                if frame.WhichOneof("kind") == "event":
                    yield told_of_frame(frame.event)
            asked = asked._replace(start=_end(json.loads(frame.message)))


def server_frames(body: bytes) -> list[event_pb2.ServerFrame]:
    """The messages of a length-delimited body."""
    found, at = [], 0
    while at < len(body):
        size = shift = 0
        more = True
        while more:
            size |= (body[at] & 0x7F) << shift
            more, shift, at = body[at] > 0x7F, shift + 7, at + 1
        found.append(event_pb2.ServerFrame.FromString(body[at : at + size]))
        at += size
    return found


def _end(message: dict[str, Any]) -> str:
    """The cursor of the last line; a refusal on the way is raised."""
    if message["op"] != "end":
        raise Refused(message)
    return f"{message['cursor']['segment']}:{message['cursor']['sequence']}"


async def in_process(asked: Asked) -> AsyncIterator[Told]:
    wanted = dict(asked.wanted)
    start: Any = asked.start
    if start not in ("now", "oldest", "boot"):
        segment, _, sequence = start.partition(":")
        start = Cursor(segment, int(sequence)) if len(segment) == 36 else At.of(start)
    archive = archive_of(asked.hub.env["EVENTHUB_ARCHIVE_URL"])
    opened = Log.open(database_url=asked.hub.database_url, archive=archive)
    async with opened as log, recording(asked.hub.database_url) as record:
        authorizer, feed = Authorizer(log, secret="of this process", clock=SystemClock()), Feed(log)
        following = [asyncio.create_task(authorizer.run()), asyncio.create_task(feed.run())]
        try:
            await until(authorizer.fresh)
            closures = Closures(log, feed)
            sources = Sources(
                log, authorizer, feed, SystemClock(), TypeRegistry(log), closures, record, CatchUp()
            )
            local = LocalHub(sources, asked.key)
            async with aclosing(local.listen(asked.stream, start=start, **wanted)) as events:  # type: ignore[type-var]
                async for one in events:
                    told = (one.sequence, one.prev, one.liveness, one.segment, one.event)
                    yield Told(*told, one.registrations)
        except HubProblem as error:
            raise Refused(error.problem) from error
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def _get(
    http: aiohttp.ClientSession,
    asked: Asked,
    accept: str,
    how: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Any:
    """A request at the listen door. `wanted` is as in messages of the websocket."""
    query = {"from": asked.start, **(how or {})}
    for name, value in asked.wanted.items():
        if name in ("mask", "registrations") and isinstance(value, list):
            query["channels" if name == "mask" else name] = ",".join(map(str, value))
        else:
            query[name] = json.dumps(value) if isinstance(value, dict) else str(value)
    return http.get(
        f"{asked.hub.web[asked.web].url}/v1/streams/{asked.stream}/events",
        params=query,
        headers={"Authorization": f"Bearer {asked.key}", "Accept": accept, **(headers or {})},
        timeout=aiohttp.ClientTimeout(total=None, sock_read=30),
    )


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status != 200:
        assert response.content_type == "application/problem+json"
        raise Refused(await response.json())


DOORS: tuple[Door, ...] = (
    socket_json,
    socket_protobuf,
    server_sent,
    long_poll,
    history,
    lines,
    protobuf,
    in_process,
)
