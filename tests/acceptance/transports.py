"""Every transport of a listener as one kind of async iterator, so that a contract is tested on all.

A transport yields the events that a listener receives, and raises `Refused` for anything else that
ends it. A transport that answers in batches (pages, lines) is requested again from its cursor.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
import pytest
from eventhub_client.types import At, Cursor, HubProblem

from delivery.listening.catchup import CatchUpScheduler
from delivery.listening.fan_out import FanOuts
from delivery.listening.in_process import LocalHub
from delivery.listening.listener_recorder import recording_listeners
from delivery.listening.services import ListenerServices
from delivery.listening.version_loader import VersionLoader
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
from tests.acceptance.documented_messages import documented
from tests.acceptance.wire import JSON, PROTOBUF, session, until
from tests.live import LiveHub

LINES, FRAMES = "application/x-ndjson", "application/x-protobuf"
SSE, PAGE = "text/event-stream", "application/json"
_WAIT_S = 2  # a poll of the tests
_LIVENESS = {0: "live", 1: "recovery", 2: "playback"}


class ReceivedEvent(NamedTuple):
    """One event as a listener receives it, on any transport."""

    sequence: int
    prev: int
    liveness: str
    segment: str
    event: dict[str, Any]
    registrations: tuple[int, ...] = ()
    signature: str = ""
    variables: Mapping[int, str] = MappingProxyType({})  # by registration, bound to the event

    @property
    def cursor(self) -> str:
        return f"{self.segment}:{self.sequence}"


class Refused(Exception):
    """A refusal of the hub: its problem document, or the equivalent message."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.code = problem["code"]


class ListenerSpec(NamedTuple):
    """A listener to start. `start`: as in URLs; `interest`: as in messages of the websocket."""

    hub: LiveHub
    key: str
    stream: str
    start: str = "oldest"
    interest: dict[str, Any] = {}  # noqa: RUF012 - never changed
    web: int = 1


Transport = Callable[[ListenerSpec], AsyncIterator[ReceivedEvent]]


def subscription(message: dict[str, Any]) -> ReceivedEvent:
    cursor = {"segment": message["segment"], "sequence": message["sequence"]}
    bindings = message.get("bindings", {})
    assert all(event == cursor for bound in bindings.values() for event in bound.values())
    return ReceivedEvent(
        message["sequence"],
        message["prev"],
        message["liveness"],
        message["segment"],
        message["event"],
        tuple(message.get("registrations", ())),
        message.get("signature", ""),
        {int(id): name for id, bound in bindings.items() for name in bound},
    )


def event_of_frame(frame: event_pb2.EventFrame) -> ReceivedEvent:
    return ReceivedEvent(
        frame.sequence,
        frame.prev,
        _LIVENESS[frame.liveness],
        frame.segment,
        json.loads(event_json(decode(frame.event))),
        tuple(frame.registrations),
        frame.signature,
        dict(frame.variables),
    )


async def socket_json(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async for received in _socket(spec, JSON):
        yield received


async def socket_protobuf(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async for received in _socket(spec, PROTOBUF):
        yield received


async def _socket(spec: ListenerSpec, subprotocol: str) -> AsyncIterator[ReceivedEvent]:
    async with session(spec.hub, spec.key, web=spec.web, subprotocol=subprotocol) as reader:
        await reader.say(
            "listen", listener="a", stream=spec.stream, **spec.interest, **{"from": spec.start}
        )
        while True:
            message = await reader.hear()
            if "frame" in message:
                yield event_of_frame(message["frame"])
            elif message["op"] == "event":
                yield subscription(message)
            elif message["op"] in ("error", "gap", "segment_mismatch"):
                raise Refused(message)


async def server_sent(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async for message in events_of(spec):
        if message["op"] == "event":
            yield subscription(message)
        elif message["op"] in ("error", "gap", "segment_mismatch"):
            raise Refused(message)


async def events_of(spec: ListenerSpec, **headers: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the messages of one connection of server-sent events, each with its id."""
    async with aiohttp.ClientSession() as http, _get(http, spec, SSE, headers=headers) as response:
        await _check(response)
        fields: dict[str, str] = {}
        async for line in response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                message = documented(json.loads(fields["data"]), "streamEvents")
                yield {**message, "id": fields.get("id")}
                fields = {}


async def long_poll(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async for received in _pages(spec, timeout=_WAIT_S):
        yield received


async def history(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async for received in _pages(spec, limit=7):
        yield received
        await asyncio.sleep(0)


async def _pages(spec: ListenerSpec, **how: int) -> AsyncIterator[ReceivedEvent]:
    async with aiohttp.ClientSession() as http:
        while True:
            async with _get(http, spec, PAGE, how) as response:
                await _check(response)
                page = await response.json()
            for item in page["events"]:
                yield subscription(item)
            cursor = page["cursor"]
            spec = spec._replace(start=f"{cursor['segment']}:{cursor['sequence']}")


async def lines(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async with aiohttp.ClientSession() as http:
        while True:
            async with _get(http, spec, LINES, {"timeout": _WAIT_S}) as response:
                await _check(response)
                async for line in response.content:
                    message = json.loads(line)
                    if "event" in message:
                        yield subscription(message)
            spec = spec._replace(start=_end(message))


async def protobuf(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    async with aiohttp.ClientSession() as http:
        while True:
            async with _get(http, spec, FRAMES, {"timeout": _WAIT_S}) as response:
                await _check(response)
                body = await response.read()
            for frame in server_frames(body):
                if frame.WhichOneof("kind") == "event":
                    yield event_of_frame(frame.event)
            spec = spec._replace(start=_end(json.loads(frame.message)))


def server_frames(body: bytes) -> list[event_pb2.ServerFrame]:
    """Return the messages of a length-delimited body."""
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
    """Return the cursor of the last line. Raises Refused if it is an error."""
    if message["op"] != "end":
        raise Refused(message)
    return f"{message['cursor']['segment']}:{message['cursor']['sequence']}"


async def in_process(spec: ListenerSpec) -> AsyncIterator[ReceivedEvent]:
    interest = dict(spec.interest)
    start: Any = spec.start
    if start not in ("now", "oldest", "boot"):
        segment, _, sequence = start.partition(":")
        start = Cursor(segment, int(sequence)) if len(segment) == 36 else At.of(start)
    archive = archive_of(spec.hub.env["EVENTHUB_ARCHIVE_URL"])
    opened = Log.open(database_url=spec.hub.database_url, archive=archive)
    async with opened as log, recording_listeners(spec.hub.database_url) as record:
        authorizer, feed = Authorizer(log, secret="of this process", clock=SystemClock()), Feed(log)
        following = [asyncio.create_task(authorizer.run()), asyncio.create_task(feed.run())]
        try:
            await until(authorizer.fresh)
            closures = Closures(log, feed)
            clock, types = SystemClock(), TypeRegistry(log)
            services = ListenerServices(
                log,
                authorizer,
                feed,
                clock,
                types,
                closures,
                record,
                CatchUpScheduler(),
                VersionLoader(log),
                FanOuts(authorizer, clock, types),
            )
            local = LocalHub(services, spec.key)
            async with aclosing(local.listen(spec.stream, start=start, **interest)) as events:  # type: ignore[type-var]
                async for one in events:
                    received = (one.sequence, one.prev, one.liveness, one.segment, one.event)
                    yield ReceivedEvent(*received, one.registrations, one.signature, one.variables)
        except HubProblem as error:
            raise Refused(error.problem) from error
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def _get(
    http: aiohttp.ClientSession,
    spec: ListenerSpec,
    accept: str,
    how: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Any:
    """Request the listen route."""
    query = {"from": spec.start, **(how or {})}
    for name, value in spec.interest.items():
        if name in ("mask", "registrations") and isinstance(value, list):
            query["channels" if name == "mask" else name] = ",".join(map(str, value))
        else:
            query[name] = json.dumps(value) if isinstance(value, dict | bool) else str(value)
    return http.get(
        f"{spec.hub.web[spec.web].url}/v1/streams/{spec.stream}/events",
        params=query,
        headers={"Authorization": f"Bearer {spec.key}", "Accept": accept, **(headers or {})},
        timeout=aiohttp.ClientTimeout(total=None, sock_read=30),
    )


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status != 200:
        assert response.content_type == "application/problem+json"
        raise Refused(await response.json())


TRANSPORTS: tuple[Transport, ...] = (
    socket_json,
    socket_protobuf,
    server_sent,
    long_poll,
    history,
    lines,
    protobuf,
    in_process,
)
each_transport = pytest.mark.parametrize(
    "transport", TRANSPORTS, ids=lambda transport: transport.__name__
)
