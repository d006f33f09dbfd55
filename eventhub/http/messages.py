"""The little HTTP that the hot doors need on bare ASGI: read a body within bounds, answer, answer
an error. Plain module.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

import orjson

from eventhub.base import limits, metrics
from eventhub.base.errors import (
    BodyTooLarge,
    EventHubError,
    InvalidField,
    InvalidUtf8,
    RequestTimeout,
    Unauthenticated,
    UnsupportedMediaType,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Disconnected(Exception):
    """The caller went away before its request was complete: nobody is there to be answered."""


class Response(NamedTuple):
    """What a door answers."""

    status: int
    body: bytes
    headers: Headers
    content_type: bytes = b"application/json"


async def _nothing() -> None:
    """There is nothing to close."""


class StreamingResponse(NamedTuple):
    """What a door answers piece by piece: the next piece is asked for when the last one was taken,
    so a slow reader costs one piece. `close` is awaited in any case, begun or not.
    """

    status: int
    body: AsyncGenerator[bytes, None]
    headers: Headers
    content_type: bytes = b"application/octet-stream"
    close: Callable[[], Awaitable[None]] = _nothing


class Peer:
    """The connection of a request beyond what ASGI tells: whether it still stands, what it has not
    taken yet, and how to drop it (eventhub/server.py). Without a server below it stands for ever.

    What the server writes passes through here, so that the head and the body of an answer can go
    out together: a system call costs more than all the rest of a short answer.
    """

    __slots__ = ("_held", "_transport", "gone", "stopping", "waker", "whole")

    def __init__(self, transport: asyncio.Transport | None = None) -> None:
        self._transport = transport
        self._held: list[bytes] | None = None
        self.whole = False  # the newest request, and so each before it, is here to its end
        self.gone = False
        self.stopping = False  # the server wants to end: finish soon
        self.waker: asyncio.Event | None = None  # set when one of both happens

    @property
    def over(self) -> bool:
        """True when nothing more should be waited for."""
        return self.gone or self.stopping

    def lost(self) -> None:
        self.gone = True
        self._wake()

    def stop(self) -> None:
        self.stopping = True
        self._wake()

    def write(self, piece: bytes) -> None:
        if self._held is not None:
            self._held.append(piece)
        elif self._transport is not None:
            self._transport.write(piece)

    def hold(self) -> None:
        """Keep what is written until `release` or `close`."""
        self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        if held and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(held))

    def close(self) -> None:
        self.release()
        if self._transport is not None:
            self._transport.close()

    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def unsent_bytes(self) -> int:
        """What the reader has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def abandon(self, frame: str | bytes) -> None:
        """Queue a last piece behind what waits, and drop the connection soon after."""
        last = frame.encode() if isinstance(frame, str) else frame
        if self._transport is not None and not self._transport.is_closing():
            if last:
                self._transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last))
            asyncio.get_running_loop().call_later(limits.ABANDON_S, self._transport.abort)
        self.lost()

    def drop(self) -> None:
        """End the connection where it is, so that a cut answer does not look complete."""
        if self._transport is not None:
            self._transport.abort()

    def _wake(self) -> None:
        if self.waker is not None:
            self.waker.set()


def peer_of(scope: Scope) -> Peer:
    """The connection that a request came over."""
    peer = scope.get("extensions", {}).get("eventhub.peer")
    return peer if isinstance(peer, Peer) else Peer()


class Incoming:
    """The messages of a caller; `complete` when the whole body was taken."""

    __slots__ = ("_receive", "complete", "peer")

    def __init__(self, receive: Receive, peer: Peer) -> None:
        self._receive = receive
        self.peer = peer
        self.complete = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.complete = not message.get("more_body")
        return message


class Head(NamedTuple):
    """The headers that the doors look at."""

    credential: str
    content_type: str
    content_length: int | None


def read_head(headers: Headers) -> Head:
    """Raises Unauthenticated without a bearer credential, InvalidField with more than one header
    for it, UnsupportedMediaType if encoded.
    """
    credential = content_type = ""
    credentials = 0
    for name, value in headers:
        if name == b"authorization":
            credentials += 1
            scheme, _, text = value.partition(b" ")
            if scheme.lower() == b"bearer":
                credential = text.strip().decode("latin-1")
        elif name == b"content-type":
            content_type = value.split(b";", 1)[0].strip().lower().decode("latin-1")
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
    if credentials > 1:
        raise _several_credentials()
    if not credential:
        raise Unauthenticated
    if len(credential) > limits.TOKEN_BYTES_MAX:
        raise Unauthenticated("The credential is too long to be a key or a token of this hub.")
    return Head(credential, content_type, content_length(headers))


def require_one_credential(headers: Headers, *, others: int = 0) -> None:
    """Raises InvalidField when the request has more than one credential: who it is from would
    depend on which one is read. `others`: those that are not in a header.
    """
    if others + sum(name == b"authorization" for name, _ in headers) > 1:
        raise _several_credentials()


def _several_credentials() -> InvalidField:
    message = "The request has more than one credential; send one Authorization header."
    return InvalidField(message, field="Authorization")


def content_length(headers: Headers) -> int | None:
    """The announced length of the body; None for one that is sent in chunks, or has none."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            return int(value[:19])
    return None


async def read_body(
    incoming: Incoming, announced: int | None, *, bytes_max: int = limits.BODY_BYTES_MAX
) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as it is known, RequestTimeout, Disconnected."""
    if announced is not None and announced > bytes_max:
        raise BodyTooLarge(bytes_max=bytes_max)
    if incoming.peer.whole:
        return await _read_all(incoming, bytes_max)  # without a timer: there is nothing to wait for
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT_S_MAX):
            return await _read_all(incoming, bytes_max)
    except TimeoutError:
        raise RequestTimeout(seconds_max=limits.BODY_TIMEOUT_S_MAX) from None


async def _read_all(incoming: Incoming, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await incoming()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise BodyTooLarge(bytes_max=bytes_max)
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks) if len(chunks) > 1 else chunks[0]


def utf8_path(raw: str) -> str:
    """A path segment; the server has percent-decoded it, broken UTF-8 shows as U+FFFD."""
    if "�" in raw or "\0" in raw:
        raise InvalidUtf8("The path is not valid UTF-8.", field="path")
    return raw


def problem_response(error: EventHubError, door: str) -> Response:
    """An error as its problem document, counted."""
    metrics.REFUSED.labels(code=error.code).inc()
    headers: Headers = []
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(error.retry_after_s).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="eventhub"'))
    if "allow" in error.details:
        headers.append((b"allow", str(error.details["allow"]).encode()))
    if isinstance(error, BodyTooLarge | RequestTimeout):
        headers.append((b"connection", b"close"))
    body = orjson.dumps(error.problem())
    return Response(error.status, body, headers, b"application/problem+json")


async def send_response(send: Send, answer: Response, incoming: Incoming) -> None:
    """Answer. After a refusal, what the caller is still sending is taken before the end: where the
    connection is closed then, closing at once would reset it, and the answer would be lost.
    """
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", str(len(answer.body)).encode()),
        *answer.headers,
    ]
    lingers = answer.status >= 400 and not incoming.complete
    incoming.peer.hold()
    try:
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body, "more_body": lingers})
    finally:
        incoming.peer.release()
    if lingers:
        await _take_rest(incoming)
        await send({"type": "http.response.body", "body": b""})


async def send_stream(
    send: Send, stream: StreamingResponse, incoming: Incoming, peer: Peer
) -> None:
    """Answer piece by piece; whoever has gone ends it. An error in the middle drops the connection:
    an answer that is cut must not look complete.
    """
    headers = [(b"content-type", stream.content_type), *stream.headers]
    try:
        async with contextlib.aclosing(stream.body) as body:
            await send({"type": "http.response.start", "status": stream.status, "headers": headers})
            await _send_pieces(send, body, peer)
    except Exception:
        peer.drop()
        while not peer.gone and (await incoming())["type"] != "http.disconnect":
            pass  # until the server knows that it is dropped
        raise
    finally:
        await stream.close()


async def _send_pieces(send: Send, body: AsyncGenerator[bytes, None], peer: Peer) -> None:
    async for piece in body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        if peer.gone:
            return
    await send({"type": "http.response.body", "body": b""})


async def _take_rest(incoming: Incoming) -> None:
    left = limits.BODY_BYTES_MAX
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.ABANDON_S):
            while left > 0 and not incoming.complete:
                left -= len((await incoming()).get("body", b""))
