"""Raw websocket sessions, and emitters with a persistent connection, for the acceptance tests."""

import asyncio
import http.client
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect

from eventhub.event import event_pb2
from tests.acceptance.documented_messages import documented
from tests.live import LiveHub, LiveZone

JSON = "eventhub.v1.json"
PROTOBUF = "eventhub.v1.protobuf"
HEAR_TIMEOUT_S = 60.0
EVENT = {"domain": "shop", "type": "order.placed"}


class Session:
    """One websocket of the hub, message by message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.skipped: list[dict[str, Any]] = []  # messages received before the awaited one

    async def say(self, op: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"op": op, **fields}))

    async def frame(self) -> str | bytes:
        """Receive the next frame."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            return await self.socket.recv()

    async def hear(self) -> dict[str, Any]:
        """Receive the next message; an event of the binary subprotocol has its EventFrame in
        `frame`.
        """
        frame = await self.frame()
        if isinstance(frame, str):
            return documented(json.loads(frame), "socket")
        server_frame = event_pb2.ServerFrame.FromString(frame)
        if server_frame.WhichOneof("kind") == "message":
            return documented(json.loads(server_frame.message), "socket")
        event = server_frame.event
        return {
            "op": "event",
            "listener": event.listener,
            "sequence": event.sequence,
            "frame": event,
        }

    async def hear_op(self, *ops: str) -> dict[str, Any]:
        """Receive messages up to one of these types; the others are added to `skipped`."""
        while True:
            message = await self.hear()
            if message["op"] in ops:
                return message
            self.skipped.append(message)

    async def listen(self, stream: str, *, name: str = "a", **fields: Any) -> dict[str, Any]:
        """Start a listener; return the message that it has started."""
        answer = await self.ask(stream, name=name, **fields)
        assert answer["op"] == "listening", answer
        return answer

    async def ask(self, stream: str, *, name: str = "a", **fields: Any) -> dict[str, Any]:
        """Request a listener; return the hub's answer."""
        if "start" in fields:
            fields["from"] = fields.pop("start")
        await self.say("listen", listener=name, stream=stream, **fields)
        return await self.hear_op("listening", "error", "gap", "segment_mismatch")

    async def events(self, count: int) -> list[dict[str, Any]]:
        """Receive the next events; any other message than a ping fails the test."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            message = await self.hear()
            assert message["op"] in ("event", "ping"), message
            if message["op"] == "event":
                found.append(message)
        return found

    async def nothing_waits(self) -> bool:
        """Return whether the hub has nothing to send: the answer to a ping is its next message."""
        await self.say("ping", id="probe")
        return (await self.hear()) == {"op": "pong", "id": "probe"}


@asynccontextmanager
async def session(
    hub: LiveHub, key: str, *, web: int = 0, subprotocol: str = JSON, **options: Any
) -> AsyncIterator[Session]:
    """Open a websocket and receive the hub's hello."""
    options.setdefault("compression", None)
    url = options.pop("url", hub.web[web].ws_url)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with connect(
        url,
        additional_headers=headers,
        subprotocols=[subprotocol],  # type: ignore[list-item]
        max_size=None,
        **options,
    ) as socket:
        made = Session(socket)
        assert (await made.hear())["op"] == "hello"
        yield made


class Emitter:
    """POSTs to the emit route on one persistent connection; for one thread."""

    def __init__(self, zone: LiveZone, *, web: int = 0, key: str = "") -> None:
        address = zone.hub.web[web].url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(address, timeout=30)
        self._headers = {
            "Authorization": f"Bearer {key or zone.admin}",
            "Content-Type": "application/json",
        }

    def __enter__(self) -> "Emitter":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def post(self, stream: str, events: Any) -> tuple[int, dict[str, Any]]:
        """Emit; return status and answer."""
        path = f"/v1/streams/{quote(stream, safe='')}/events"
        body = events if isinstance(events, bytes) else json.dumps(events).encode()
        self._connection.request("POST", path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def numbers(self, stream: str, events: Any) -> list[int]:
        """Emit events that must be accepted; return their sequences."""
        status, answer = self.post(stream, events)
        assert status == 200, answer
        return [n for run in answer["ranges"] for n in range(run["first"], run["last"] + 1)]


def sockets(hub: LiveHub) -> int:
    """Return the number of readers of the hub, over websockets and HTTP."""
    text = hub.call("GET", "/metrics").body.decode()
    found = [line.split()[-1] for line in text.splitlines() if line.startswith("eventhub_sockets")]
    return int(sum(float(value) for value in found))


async def until(condition: Callable[[], bool], timeout_s: float = HEAR_TIMEOUT_S) -> None:
    """Wait until a condition that sends no notification holds."""
    async with asyncio.timeout(timeout_s):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def numbered(first: int, last: int, **fields: Any) -> list[dict[str, Any]]:
    """Return events with an attribute `n` from first to last."""
    return [{**EVENT, "attributes": {"n": n}, **fields} for n in range(first, last + 1)]


def chunks(items: list[Any], size: int) -> list[list[Any]]:
    found = iter(items)
    return [list(chunk) for chunk in iter(lambda: tuple(itertools.islice(found, size)), ())]
