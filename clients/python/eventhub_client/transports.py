"""The three transports of a listener: websocket, server-sent events, long poll. Plain module.

Each yields the hub's messages in the websocket's JSON form until the connection ends; listening.py
reconnects.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal, NamedTuple

import aiohttp
import orjson

from eventhub.base import limits
from eventhub_client.errors import refusal
from eventhub_client.http import Http, Request, refuse, retry_after_s, stream_path
from eventhub_client.position import ReadPosition
from eventhub_client.types import HubProblem

Message = dict[str, Any]
Source = Callable[[Http, ReadPosition], AsyncIterator[Message]]
Transport = Literal["websocket", "sse", "poll"]

_SUBPROTOCOL = "eventhub.v1.json"
# the credential is refused, or may not be used from here: a retry cannot help
_FINAL_CLOSES = {4401: ("invalid_credentials", 401), 4403: ("address_not_allowed", 403)}
_RESTARTS = 1012
_PAUSE = re.compile(r"retry_after=(\d+(?:\.\d+)?)")  # the reason of such a close
_WAIT = str(limits.CLIENT_POLL_S)


async def websocket_messages(http: Http, position: ReadPosition) -> AsyncIterator[Message]:
    """Yield the messages of a websocket with one listener. Raises HubProblem for a refused
    handshake or credential.
    """
    async with open_socket(http) as socket:
        await socket.send_str(position.request())
        async for message in messages_of(socket):
            yield message


@asynccontextmanager
async def open_socket(http: Http) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Open a websocket with JSON frames. Raises HubProblem for a refused handshake."""
    try:
        socket = await http.session.ws_connect(
            f"{http.base_url}/v1/ws",
            protocols=(_SUBPROTOCOL,),
            max_msg_size=0,
            heartbeat=limits.CLIENT_SILENCE_S / 2,
        )
    except aiohttp.WSServerHandshakeError as error:
        raise refusal(_handshake(error), retry_after_s=retry_after_s(error.headers)) from error
    async with socket:
        yield socket


async def messages_of(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[Message]:
    """Yield the messages of a websocket until it ends. Raises HubProblem if the hub closed it for
    good, or until a web process has restarted: then with the pause that the hub names.
    """
    while True:
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            break
        yield orjson.loads(message.data)
    problem = close_problem(socket.close_code, str(message.extra or ""))
    if problem is not None:
        raise problem


def close_problem(code: int | None, reason: str) -> HubProblem | None:
    """Return the problem that a close of the hub means; None if it means a lost connection."""
    if code in _FINAL_CLOSES:
        name, status = _FINAL_CLOSES[code]
        return refusal({"code": name, "status": status})
    if code != _RESTARTS:
        return None
    pause = _PAUSE.fullmatch(reason)
    problem = {"code": "restarting", "status": 503, "detail": "The web process restarts."}
    return refusal(problem, retry_after_s=float(pause[1]) if pause else None)


class ServerSent(NamedTuple):
    """One event of a stream of events."""

    event: str
    data: str
    id: str


class EventStream:
    """The parser of server-sent events, with its state between chunks.

    Source: the HTML standard, "Parsing an event stream"; the hub ends lines with a line feed alone.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, list[str]] = {}
        self._id = ""

    def feed(self, chunk: bytes) -> list[ServerSent]:
        """Return the events that a chunk of bytes completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for line in lines:
            complete = self._line(line.removesuffix(b"\r").decode())
            if complete is not None:
                found.append(complete)
        return found

    def _line(self, line: str) -> ServerSent | None:
        if line:
            name, _, value = line.partition(":")
            if name:  # a line that begins with a colon is a comment: a heartbeat
                self._fields.setdefault(name, []).append(value.removeprefix(" "))
            return None
        fields, self._fields = self._fields, {}
        self._id = fields.get("id", [self._id])[-1]
        if "data" not in fields:
            return None
        return ServerSent(fields.get("event", ["message"])[-1], "\n".join(fields["data"]), self._id)


async def sse_messages(http: Http, position: ReadPosition) -> AsyncIterator[Message]:
    """Yield the messages of one response of server-sent events, until it ends or stays silent."""
    path = stream_path(position.stream, "events")
    async with aclosing(server_sent(http, path, position.query())) as found:  # type: ignore[type-var]
        async for message in found:
            yield message


async def server_sent(
    http: Http, path: str, query: dict[str, str] | None = None
) -> AsyncIterator[Message]:
    """Yield the messages of one response of server-sent events, until it ends or stays silent.
    Raises HubProblem for a refusal.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_read=limits.CLIENT_SILENCE_S)
    async with http.session.get(
        http.base_url + path,
        params=query,
        headers={"Accept": "text/event-stream"},
        timeout=timeout,
    ) as response:
        await refuse(response)
        stream = EventStream()
        async for chunk in response.content.iter_any():
            for event in stream.feed(chunk):
                yield orjson.loads(event.data)


async def poll_messages(http: Http, position: ReadPosition) -> AsyncIterator[Message]:
    """Yield the messages of one long poll after the other."""
    path = stream_path(position.stream, "events")
    while True:
        request = Request("GET", path, query={**position.query(), "timeout": _WAIT})
        found = (await http.ask(request, timeout_s=limits.CLIENT_POLL_S * 2)).json
        for item in found["events"]:
            yield {"op": "event", **item}
        yield {"op": "position", **found["cursor"]}


TRANSPORTS: dict[Transport, Source] = {
    "websocket": websocket_messages,
    "sse": sse_messages,
    "poll": poll_messages,
}


def _handshake(error: aiohttp.WSServerHandshakeError) -> dict[str, Any]:
    """Return a problem for a refused handshake by its status, since its body is not read."""
    code = "invalid_credentials" if error.status == 401 else "refused"
    return {"code": code, "status": error.status, "detail": error.message}
