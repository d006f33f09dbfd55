"""A client of a hub over HTTP and websocket:

`emit`, and `listen` that resumes by itself. Plain; asyncio and aiohttp.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

import aiohttp
import orjson

from eventhub.client.types import Cursor, Delivered, HubProblem, LossDetected, Receipt, Start

_SUBPROTOCOL = "eventhub.v1.json"
_RETRY = (502, 503, 504, 429)
_PAUSE_S_MAX = 5.0
_FINAL_CLOSES = (4401,)  # the credential is refused: trying again is of no use
Event = dict[str, Any]


class HubClient:
    """`async with HubClient("http://127.0.0.1:8000", key) as hub: ...`"""

    def __init__(self, base_url: str, credential: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {credential}"}
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "HubClient":
        self._http = aiohttp.ClientSession(headers=self._headers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._http is not None:
            await self._http.close()

    async def emit(
        self, stream: str, events: Event | Sequence[Event], *, retry_for_s: float = 0.0
    ) -> Receipt:
        """Store one event or several, all or none; returns when they are durable.

        With `retry_for_s`, a hub that is away is tried again for so long; give each event an `id`
        with `incarnation` and `sequence` then, and nothing is stored twice. Raises HubProblem,
        or what aiohttp raises when the hub cannot be reached.
        """
        body = orjson.dumps(events)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + retry_for_s
        for attempt in range(1_000_000):
            try:
                return await self._emit_once(stream, body)
            except (HubProblem, aiohttp.ClientError, TimeoutError) as error:
                pause_s = _pause_s(error, attempt)
                if pause_s is None or loop.time() + pause_s > deadline_s:
                    raise
                await asyncio.sleep(pause_s)
        raise AssertionError("unreachable")

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the management API, `await hub.call("POST", "/v1/registrations", {...})`:

        the answer's JSON, None if it has none. Raises HubProblem for a refusal.
        """
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": "application/json"} if data is not None else {}
        url = f"{self._base_url}{path}"
        async with self._session.request(method, url, data=data, headers=headers) as response:
            content = await response.read()
            if response.status >= 400:
                raise HubProblem({"status": response.status, **_json(content)})
            return orjson.loads(content) if content else None

    async def _emit_once(self, stream: str, body: bytes) -> Receipt:
        url = f"{self._base_url}/v1/streams/{stream}/events"
        headers = {"Content-Type": "application/json"}
        async with self._session.post(url, data=body, headers=headers) as response:
            answer = _json(await response.read())
            if response.status != 200:
                answer.setdefault("status", response.status)
                retry_after = response.headers.get("Retry-After")
                raise HubProblem(answer, retry_after_s=float(retry_after) if retry_after else None)
            return Receipt.of(answer)

    async def listen(
        self, stream: str, *, start: Start = "now", mask: int | None = None, **pairs: Any
    ) -> AsyncIterator[Delivered]:
        """Every event of a stream from a start on, in order, once; reconnects and resumes by
        itself.

        `mask`: 64 channel bits; `pairs`: domain, type, attributes, or instead of them
        registrations (their ids). Raises HubProblem (`gap`, `segment_mismatch`,
        `unknown_stream`, ...) and LossDetected.
        """
        place = _Place(stream, start, mask, pairs)
        attempt = 0
        while True:
            try:
                async for delivered in self._listen_once(place):
                    attempt = 0
                    yield delivered
            except aiohttp.WSServerHandshakeError as error:
                if error.status not in _RETRY:
                    raise HubProblem(_handshake_problem(error)) from error
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                pass
            except HubProblem as error:
                if error.status not in _RETRY:
                    raise
            await asyncio.sleep(min(0.05 * 2**attempt, _PAUSE_S_MAX) * random.uniform(0.5, 1))  # noqa: S311
            attempt = min(attempt + 1, 10)

    async def _listen_once(self, place: "_Place") -> AsyncIterator[Delivered]:
        async with AsyncExitStack() as stack:
            socket = await stack.enter_async_context(
                self._session.ws_connect(
                    f"{self._base_url}/v1/ws",
                    protocols=(_SUBPROTOCOL,),
                    max_msg_size=0,
                    heartbeat=20,
                )
            )
            await socket.send_str(place.request())
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                delivered = place.take(orjson.loads(message.data))
                if delivered is not None:
                    yield delivered
            if socket.close_code in _FINAL_CLOSES:
                raise HubProblem({"code": "invalid_credentials", "status": 401})

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise RuntimeError("Use the client in `async with`.")
        return self._http


class _Place:
    """Where one listen stands, over all its connections: the rules of the session protocol, without
    I/O.
    """

    def __init__(self, stream: str, start: Start, mask: int | None, pairs: dict[str, Any]) -> None:
        self._fields = {"op": "listen", "listen": "client", "stream": stream, **pairs}
        if mask is not None:
            self._fields["mask"] = str(mask)
        self._start: Start = start

    def request(self) -> str:
        """The message that begins or resumes the listen."""
        start = self._start
        fields = {
            **self._fields,
            "from": start._asdict() if isinstance(start, Cursor) else start,
        }
        return orjson.dumps(fields).decode()

    def take(self, message: dict[str, Any]) -> Delivered | None:
        """What a message of the hub means; raises HubProblem for a refusal, LossDetected for a lost
        frame.
        """
        op = message["op"]
        if op == "event":
            self._follows(message["prev"])
            self._start = Cursor(message["segment"], message["sequence"])
            return Delivered(
                message["segment"],
                message["sequence"],
                message["prev"],
                message["liveness"],
                message["event"],
                tuple(message.get("registrations", ())),
            )
        if op == "listening":
            self._start = Cursor(**message["cursor"])
        elif op == "ping":
            self._moved(message["positions"].get("client"))
        elif op in ("gap", "segment_mismatch", "error"):
            raise HubProblem(message)
        return None

    def _moved(self, position: dict[str, Any] | None) -> None:
        if position is not None:
            self._follows(position["prev"])
            self._start = Cursor(position["segment"], position["sequence"])

    def _follows(self, prev: int) -> None:
        if isinstance(self._start, Cursor) and prev != self._start.sequence:
            raise LossDetected(known=self._start.sequence, prev=prev)


def _json(body: bytes) -> dict[str, Any]:
    """What the hub says; nothing if somebody else answered, such as a proxy in front of it."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _handshake_problem(error: aiohttp.WSServerHandshakeError) -> dict[str, Any]:
    """The body of a refused handshake is not read, so its status has to do."""
    code = "invalid_credentials" if error.status == 401 else "refused"
    return {"code": code, "status": error.status, "detail": error.message}


def _pause_s(error: Exception, attempt: int) -> float | None:
    """How long to wait before the next try, None for never."""
    if isinstance(error, HubProblem) and error.status not in _RETRY:
        return None
    pause_s = min(0.05 * 2 ** min(attempt, 8), _PAUSE_S_MAX)
    if isinstance(error, HubProblem) and error.retry_after_s is not None:
        pause_s = error.retry_after_s
    return float(pause_s) * random.uniform(0.5, 1.0)  # noqa: S311
