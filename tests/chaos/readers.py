"""Listeners over /v1/ws that check the frames they receive and remember them for the judge.

`Seen` has the memory and the rules. There are three readers: by the client library, by a plain
session that stays connected, and by one that disconnects and resumes at random.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Any, NamedTuple

import aiohttp
import orjson
from eventhub_client.remote import HubClient
from eventhub_client.types import Cursor, HubProblem, LossDetected, Start

from eventhub.event import event_pb2
from tests.chaos.events import Interest, Name

JSON = "eventhub.v1.json"
PROTOBUF = "eventhub.v1.protobuf"
RECONNECT_S = 0.1
HEARTBEAT_S = 25.0


class Sight(NamedTuple):
    """An event as a reader received it."""

    segment: str
    sequence: int
    name: str


class Seen:
    """The events that one reader of one stream received since the stream's start, over all its
    connections.
    """

    def __init__(self, name: str, stream: str, interest: Interest) -> None:
        self.name = name
        self.stream = stream
        self.interest = interest
        self.cursor: Cursor | None = None
        self.unjudged: list[Sight] = []
        self.count = 0
        self.connections = 0
        self.lost_connections = 0  # that the reader did not end itself
        self.statuses: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.latencies_s: list[float] = []
        self.keep_latencies = False

    @property
    def start(self) -> Start:
        return self.cursor if self.cursor is not None else "oldest"

    def request(self, window: int | None = None) -> dict[str, Any]:
        """Return the listen message that starts or resumes."""
        start = self.start
        fields: dict[str, Any] = {
            "op": "listen",
            "listener": "chaos",
            "stream": self.stream,
            "from": start if isinstance(start, str) else start._asdict(),
            **self.interest.fields(),
        }
        if window is not None:
            fields["window"] = window
        return fields

    def event(self, cursor: Cursor, prev: int, attributes: dict[str, Any]) -> None:
        """Record an event frame; it must follow the last sequence that this reader received."""
        self._follows(prev)
        if cursor.sequence <= prev:
            self.problems.append(f"{self.name}: {cursor.sequence} follows {prev}")
        self.cursor = cursor
        self.unjudged.append(Sight(*cursor, attributes["name"]))
        self.count += 1
        if self.keep_latencies:
            self.latencies_s.append(time.monotonic() - attributes["at"])

    def message(self, message: dict[str, Any]) -> None:
        """Record any other frame."""
        op = message["op"]
        if op == "listening":
            cursor = Cursor(**message["cursor"])
            if self.cursor is not None and cursor != self.cursor:
                self.problems.append(f"{self.name}: resumed {self.cursor}, got {cursor}")
            self.cursor = cursor
        elif op == "ping" and (position := message["positions"].get("chaos")):
            self._follows(position["prev"])
            self.cursor = Cursor(position["segment"], position["sequence"])
        elif op == "status":
            self.statuses.append(message)
        elif op in ("gap", "segment_mismatch"):
            self.problems.append(f"{self.name}: {message}")
        elif op == "error":
            if message["status"] != 503:
                self.problems.append(f"{self.name}: {message}")
            raise Refused(message["code"])

    def _follows(self, prev: int) -> None:
        if self.cursor is not None and prev != self.cursor.sequence:
            self.problems.append(
                f"{self.name}: knows {self.cursor.sequence}, but the next frame follows {prev}"
            )


class Refused(Exception):
    """The hub could not start the listener now."""


def decode(data: str | bytes) -> tuple[dict[str, Any] | None, event_pb2.EventFrame | None]:
    """Decode a frame of either subprotocol: (message, None), or (None, binary event)."""
    if isinstance(data, str):
        return orjson.loads(data), None
    frame = event_pb2.ServerFrame.FromString(data)
    if frame.WhichOneof("kind") == "event":
        return None, frame.event
    return orjson.loads(frame.message), None


def take(seen: Seen, data: str | bytes) -> int | None:
    """Record a frame; return the sequence if it was an event."""
    message, binary = decode(data)
    if binary is not None:
        event = event_pb2.Event.FromString(binary.event)
        attributes = orjson.loads(event.attributes)
        seen.event(Cursor(binary.segment, binary.sequence), binary.prev, attributes)
        return int(binary.sequence)
    assert message is not None
    if message["op"] == "event":
        cursor = Cursor(message["segment"], message["sequence"])
        seen.event(cursor, message["prev"], message["event"]["attributes"])
        return cursor.sequence
    seen.message(message)
    return None


class Manner(NamedTuple):
    """How a plain reader connects."""

    subprotocol: str = JSON
    stays_s: float | None = None  # about so long, then it goes away; None: for ever
    window: int | None = None  # unacknowledged events it allows


async def read_plainly(
    http: aiohttp.ClientSession,
    urls: Sequence[str],
    seen: Seen,
    manner: Manner,
    dice: random.Random,
) -> None:
    """Read until cancelled, and reconnect again and again from the cursor, to the next URL of the
    hub.
    """
    for url in cycle(urls):
        leave_at = None
        if manner.stays_s is not None:
            leave_at = time.monotonic() + manner.stays_s * dice.uniform(0.05, 2)
        try:
            await _read_once(http, url, seen, manner, leave_at)
            if leave_at is None:
                seen.lost_connections += 1
        except TimeoutError:
            if leave_at is None:
                seen.lost_connections += 1
        except (aiohttp.ClientError, ConnectionError):
            seen.lost_connections += 1
        except Refused:
            pass
        await asyncio.sleep(RECONNECT_S * dice.uniform(0.2, 2))


async def _read_once(
    http: aiohttp.ClientSession, url: str, seen: Seen, manner: Manner, leave_at: float | None
) -> None:
    loop_at = None if leave_at is None else asyncio.get_running_loop().time()
    if leave_at is not None and loop_at is not None:
        loop_at += leave_at - time.monotonic()
    async with (
        asyncio.timeout_at(loop_at),
        http.ws_connect(
            f"{url}/v1/ws",
            protocols=(manner.subprotocol,),
            max_msg_size=0,
            heartbeat=None if manner.stays_s else HEARTBEAT_S,
            compress=0,
        ) as socket,
    ):
        seen.connections += 1
        await socket.send_json(seen.request(manner.window))
        try:
            async for message in socket:
                sequence = take(seen, message.data)
                if sequence is not None and manner.window is not None:
                    ack = {"op": "ack", "listener": "chaos", "sequence": sequence}
                    await socket.send_json(ack)
        except asyncio.CancelledError:
            if seen.count % 2:
                _cut(socket)
            raise


def _cut(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Drop the connection without a close frame, as a network does."""
    connection = socket._response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def read_by_client(client: HubClient, seen: Seen) -> None:
    """Read with the client library, which resumes by itself, until cancelled."""
    interest = seen.interest
    color = interest.color
    pairs: dict[str, Any] = {} if color is None else {"attributes": {"color": color}}
    try:
        async for delivered in client.listen(
            seen.stream, start="oldest", mask=interest.mask, **pairs
        ):
            seen.cursor = None  # the library checks the chain itself
            seen.event(delivered.cursor, delivered.prev, delivered.event["attributes"])
    except (HubProblem, LossDetected) as error:
        seen.problems.append(f"{seen.name}: the client raised {error!r}")


def expected(seen: Seen, names: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield (sequence, name) of the events that a reader must receive, of the stream's events from
    `first` on.
    """
    for sequence, name in enumerate(names, first):
        if seen.interest.wants(Name.parse(name).number):
            yield sequence, name


async def close_quietly(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
