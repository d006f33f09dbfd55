"""A consumer session across all its connections: its events in the session's order, and their
acknowledgements. Plain module.

A task reads the connection, so that acknowledgements are answered while the caller handles an
event.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Literal
from urllib.parse import quote

import aiohttp
import orjson

from eventhub_client.errors import RETRY, refusal
from eventhub_client.http import Http, Request
from eventhub_client.listening import UNREACHABLE, pause_s
from eventhub_client.transports import messages_of, open_socket, server_sent
from eventhub_client.types import Delivered, HubProblem, SessionEnded

SessionTransport = Literal["websocket", "sse"]

PULL_TIMEOUT_S = 30.0  # for the answer to a pull, beyond the time that it waits


class ConsumerSession:
    """`async with hub.session("alarms") as session: async for event in session: ...`, then `await
    session.acknowledge(event)`.

    It connects again after each loss. What was not acknowledged comes again, so an event may come
    twice, and the order holds on one connection. `refused` has the problems of streams that the key
    may not listen to. Over server-sent events it acknowledges with requests.

    The iterator raises SessionEnded when the hub ends the session, HubProblem if a retry cannot
    help, and with `on_gap="raise"` GapError or SegmentMismatchError, when events are no longer
    stored; connect again to continue after them.
    """

    def __init__(
        self,
        http: Http,
        name: str,
        *,
        window: int | None = None,
        on_gap: Literal["raise", "continue"] = "raise",
        transport: SessionTransport = "websocket",
    ) -> None:
        if transport == "sse" and window is not None:
            raise ValueError("Over server-sent events the window is that of the session.")
        self.name = name
        self.refused: dict[str, HubProblem] = {}  # by stream
        self._http = http
        self._window = window
        self._on_gap = on_gap
        self._transport = transport
        self._items: asyncio.Queue[Delivered | Exception] = asyncio.Queue()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._stored: dict[str, asyncio.Future[None]] = {}  # acknowledgements to be stored, by id
        self._ids = 0
        self._attempt = 0  # since it was connected
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ConsumerSession":
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def __aiter__(self) -> AsyncIterator[Delivered]:
        """Yield the events of the session; each has its `stream`."""
        while True:
            item = await self._items.get()
            if isinstance(item, Exception):
                raise item
            yield item

    async def acknowledge(
        self, *events: Delivered, through: bool = False, stored: bool = False
    ) -> None:
        """Acknowledge events. With `through` also those of the same streams that came before them
        and have lower sequences. With `stored` wait until that is durable.

        Raises ConnectionError if the connection is lost: the events come again. Over server-sent
        events it always waits, and raises HubProblem for a refusal (so of `through` in an order
        other than fifo and none), and aiohttp's errors without an answer.
        """
        if self._transport == "sse":
            await self._post(
                [
                    {"stream": stream, **_acknowledged(found, through=through)}
                    for stream, found in _by_stream(events).items()
                ]
            )
            return
        for stream, found in _by_stream(events).items():
            await self._acknowledge(stream, found, through=through, stored=stored)

    async def nak(self, *events: Delivered) -> None:
        """Have events delivered again at once, with the next `attempt`, because they could not be
        processed; if the session's group shares, to any member.

        Raises ConnectionError if the connection is lost: then the events come again anyway. Over
        server-sent events it raises what `acknowledge` raises.
        """
        for stream, found in _by_stream(events).items():
            if self._transport == "sse":
                await self._post([{"stream": stream, "nak": found}])
            else:
                fields = {"op": "nak", "session": self.name, "stream": stream, "sequences": found}
                await self._say(fields)

    async def pull(
        self,
        events: int = 100,
        *,
        wait_s: float = 0.0,
        visibility_s: float = 30.0,
        acknowledge: Sequence[Delivered] = (),
    ) -> list[Delivered]:
        """Return the next events, at most so many (0: only acknowledge), without `async with`: they
        are this caller's for `visibility_s`, and come again unless they are acknowledged by then.
        It waits `wait_s` for the first one, after `acknowledge` is stored.

        `refused` has the gaps and errors of streams that the last pull reported. Raises HubProblem,
        and aiohttp's errors without an answer: then the events come again.
        """
        times: dict[str, Any] = {"wait_s": wait_s, "visibility_s": visibility_s}
        acknowledgements = [
            {"stream": stream, "sequences": found}
            for stream, found in _by_stream(acknowledge).items()
        ]
        return await self._pull({"max": events, **times, "acknowledgements": acknowledgements})

    async def extend(self, *events: Delivered, visibility_s: float) -> None:
        """Have events that were pulled for so many seconds from now; with 0 they are given back,
        and come again at once.
        """
        visibility = [
            {"stream": stream, "sequences": found, "visibility_s": visibility_s}
            for stream, found in _by_stream(events).items()
        ]
        await self._pull({"max": 0, "visibility": visibility})

    async def _pull(self, body: dict[str, Any]) -> list[Delivered]:
        request = Request("POST", self._path("pull"), orjson.dumps(body))
        timeout_s = body.get("wait_s", 0.0) + PULL_TIMEOUT_S
        found = (await self._http.ask(request, timeout_s=timeout_s)).json
        self.refused = {one["stream"]: refusal(one) for one in found["messages"] if "stream" in one}
        return [Delivered.of(one) for one in found["events"]]

    async def _acknowledge(
        self, stream: str, sequences: Sequence[int], *, through: bool, stored: bool
    ) -> None:
        fields: dict[str, Any] = {"op": "ack", "session": self.name, "stream": stream}
        fields |= _acknowledged(sequences, through=through)
        if not stored:
            await self._say(fields)
            return
        self._ids += 1
        id = str(self._ids)
        done = self._stored[id] = asyncio.get_running_loop().create_future()
        try:
            await self._say({**fields, "id": id})
            await done
        finally:
            self._stored.pop(id, None)

    async def _post(self, streams: Sequence[dict[str, Any]]) -> None:
        """Acknowledge events over HTTP, all or none."""
        body = orjson.dumps({"streams": streams})
        await self._http.ask(Request("POST", self._path("acknowledgements"), body))

    def _path(self, what: str) -> str:
        return f"/v1/sessions/{quote(self.name, safe='')}/{what}"

    async def _say(self, fields: dict[str, Any]) -> None:
        if self._socket is None:
            raise ConnectionError("The session is not connected; its events come again.")
        await self._socket.send_str(orjson.dumps(fields).decode())

    async def _run(self) -> None:
        """Connect until the session ends; hand the reason to the iterator."""
        while True:
            wait_s = None
            try:
                await self._once()
            except UNREACHABLE:
                pass
            except (HubProblem, SessionEnded) as error:
                if isinstance(error, SessionEnded) or error.status not in RETRY:
                    self._items.put_nowait(error)
                    return
                wait_s = error.retry_after_s
            await asyncio.sleep(pause_s(self._attempt, wait_s))
            self._attempt += 1

    async def _once(self) -> None:
        """Read one connection until it is lost."""
        if self._transport == "sse":
            async with aclosing(server_sent(self._http, self._path("events"))) as found:  # type: ignore[type-var]
                async for message in found:
                    if message["op"] == "connected":
                        self._begin()
                    self._take(message)
            return
        try:
            async with open_socket(self._http) as socket:
                await socket.send_str(_text({"op": "connect", "session": self.name}))
                async for message in messages_of(socket):
                    if message["op"] == "connected":
                        self._begin()
                        self._socket = socket
                        await self._set_window(socket)
                    self._take(message)
        finally:
            self._lose()

    def _begin(self) -> None:
        """Start on a connection: what waits from the one before comes again."""
        while not self._items.empty():
            self._items.get_nowait()
        self._attempt = 0

    async def _set_window(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        if self._window is not None:
            credit = {"op": "credit", "session": self.name, "events": self._window}
            await socket.send_str(_text(credit))

    def _lose(self) -> None:
        self._socket = None
        for done in self._stored.values():
            if not done.done():
                done.set_exception(ConnectionError("The connection was lost."))

    def _take(self, message: dict[str, Any]) -> None:
        """Take a message of the hub. Raises SessionEnded, HubProblem."""
        op = message["op"]
        if op == "event":
            self._items.put_nowait(Delivered.of(message))
        elif op == "acked":
            done = self._stored.get(message["id"])
            if done is not None and not done.done():
                done.set_result(None)
        elif op == "disconnected":
            raise SessionEnded(self.name, message["reason"])
        elif op in ("gap", "segment_mismatch"):
            if self._on_gap == "raise":
                raise refusal(message)
        elif op == "error" and "stream" in message:
            self.refused[message["stream"]] = refusal(message)
        elif op == "error":
            raise refusal(message)


def _acknowledged(sequences: Sequence[int], *, through: bool) -> dict[str, Any]:
    """Return the fields of a message that acknowledges events of a stream."""
    return {"sequence": max(sequences)} if through else {"sequences": [*sequences]}


def _by_stream(events: Sequence[Delivered]) -> dict[str, list[int]]:
    """Return the sequences of events by stream."""
    sequences: dict[str, list[int]] = {}
    for event in events:
        sequences.setdefault(event.stream, []).append(event.sequence)
    return sequences


def _text(fields: dict[str, Any]) -> str:
    return orjson.dumps(fields).decode()
