"""The part of HTTP that the hot routes need on plain ASGI: read a body within limits, send a
response, a stream or an error. Plain module.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from functools import lru_cache
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
from eventhub.eventlog.stored import Cursor

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class Response(NamedTuple):
    """The response of a route. `position`: the last event of the stream that it is about, sent in
    headers.
    """

    status: int
    body: bytes
    headers: Headers
    content_type: bytes = b"application/json"
    position: Cursor | None = None


async def _nothing() -> None:
    """Close nothing."""


class StreamingResponse(NamedTuple):
    """A response sent in chunks: the next one is produced when the last one was taken, so a slow
    reader costs one chunk. `close` is always awaited, even if the body was never started.
    """

    status: int
    body: AsyncGenerator[bytes, None]
    headers: Headers
    content_type: bytes = b"application/octet-stream"
    close: Callable[[], Awaitable[None]] = _nothing
    position: Cursor | None = None


class Peer:
    """The connection of a request, beyond what ASGI offers: whether it is open, how much it has not
    taken yet, and how to abort it (eventhub/web/server.py). Without a server it is always open.

    The server writes through it.
    """

    __slots__ = ("_transport", "gone", "stopping", "waker", "whole")
    variant = "chunk"

    def __init__(self, transport: asyncio.Transport | None = None) -> None:
        self._transport = transport
        self.whole = False  # the newest request, and so each before it, was received completely
        self.gone = False
        self.stopping = False  # the server is shutting down: finish soon
        self.waker: asyncio.Event | None = None  # set when `gone` or `stopping` is

    @property
    def over(self) -> bool:
        """True when the connection is lost or the server is stopping."""
        return self.gone or self.stopping

    def lost(self) -> None:
        self.gone = True
        self._wake()

    def stop(self) -> None:
        self.stopping = True
        self._wake()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def prepare(self, frames: Sequence[bytes]) -> bytes:
        """Return frames as one chunk of a response without a length, of any connection."""
        body = b"".join(frames)
        return b"%x\r\n%b\r\n" % (len(body), body)

    def write_prepared(self, data: bytes) -> bool:
        """Write a chunk at once; return False if the client takes none now."""
        if self.over or self.is_closing():
            return False
        if self.unsent_bytes() > limits.SOCKET_WRITE_BYTES_MAX:
            return False
        self.write(data)
        return True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def unsent_bytes(self) -> int:
        """Return the number of bytes that the reader has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def abandon(self, frame: str | bytes) -> None:
        """Queue a last chunk after the unsent bytes, and abort the connection soon after."""
        last = frame.encode() if isinstance(frame, str) else frame
        if self._transport is not None and not self._transport.is_closing():
            if last:
                self._transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last))
            asyncio.get_running_loop().call_later(limits.ABANDON_S, self._transport.abort)
        self.lost()

    def drop(self) -> None:
        """Abort the connection, so that a truncated response does not look complete."""
        if self._transport is not None:
            self._transport.abort()

    def _wake(self) -> None:
        if self.waker is not None:
            self.waker.set()


def peer_of(scope: Scope) -> Peer:
    """Return the connection that a request came over."""
    peer = scope.get("extensions", {}).get("eventhub.peer")
    return peer if isinstance(peer, Peer) else Peer()


class Incoming:
    """The ASGI messages of a request. `complete`: the whole body was received."""

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
    """The request headers that the routes read."""

    credential: str
    content_type: str
    content_length: int | None


def read_head(headers: Headers, *, compressed: bool = False) -> Head:
    """Parse the headers. Raises Unauthenticated without a bearer credential, InvalidField for more
    than one Authorization header, UnsupportedMediaType for a compressed body. `compressed`: the
    caller calls `require_uncompressed` itself.
    """
    credential = content_type = ""
    credentials = 0
    for name, value in headers:
        if name == b"authorization":
            credentials += 1
            credential = _bearer(value)
        elif name == b"content-type":
            content_type = _media_type(value)
        elif name == b"content-encoding" and not compressed:
            require_uncompressed(value)
    if credentials > 1:
        raise _several_credentials()
    return Head(_checked(credential), content_type, content_length(headers))


@lru_cache(maxsize=64)
def _media_type(value: bytes) -> str:
    return value.split(b";", 1)[0].strip().lower().decode("latin-1")


def require_uncompressed(encoding: bytes) -> None:
    """Raise UnsupportedMediaType for a Content-Encoding that compresses the body."""
    if encoding.strip().lower() not in (b"", b"identity"):
        raise UnsupportedMediaType("The body must not be compressed; send it as it is.")


def bearer_of(headers: Headers) -> str:
    """Return the bearer credential. Raises Unauthenticated without one, InvalidField for more."""
    require_one_credential(headers)
    given = (_bearer(value) for name, value in headers if name == b"authorization")
    return _checked(next(given, ""))


def _bearer(value: bytes) -> str:
    scheme, _, text = value.partition(b" ")
    return text.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


def _checked(credential: str) -> str:
    if not credential:
        raise Unauthenticated
    if len(credential) > limits.TOKEN_BYTES_MAX:
        raise Unauthenticated("The credential is too long to be a key or a token of this hub.")
    return credential


def require_one_credential(headers: Headers, *, others: int = 0) -> None:
    """Raise InvalidField for more than one credential: the principal would depend on which one is
    read. `others`: credentials outside of headers.
    """
    if others + sum(name == b"authorization" for name, _ in headers) > 1:
        raise _several_credentials()


def _several_credentials() -> InvalidField:
    message = "The request has more than one credential; send one Authorization header."
    return InvalidField(message, field="Authorization")


def content_length(headers: Headers) -> int | None:
    """Return the announced length of the body; None if it is chunked or absent."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            return int(value[:19])
    return None


async def read_body(
    incoming: Incoming, announced: int | None, *, bytes_max: int = limits.BODY_BYTES_MAX
) -> bytes:
    """Return the whole body. Raises BodyTooLarge (early), RequestTimeout, Disconnected."""
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


def position_headers(position: Cursor | None) -> Headers:
    """Return the position of a reply as headers (EMC-09)."""
    if position is None:
        return []
    return [
        (b"eventhub-sequence", b"%d" % position.sequence),
        (b"eventhub-segment", position.segment.encode()),
    ]


def utf8_path(raw: str) -> str:
    """Return a path segment. The server decoded it: U+FFFD marks bytes that are no UTF-8."""
    if "�" in raw or "\0" in raw:
        raise InvalidUtf8("The path is not valid UTF-8.", field="path")
    return raw


def problem_response(error: EventHubError) -> Response:
    """Return an error as its problem document, and count it."""
    metrics.REFUSED.labels(code=error.code).inc()
    headers = error.headers
    if isinstance(error, BodyTooLarge | RequestTimeout):
        headers.append((b"connection", b"close"))
    body = orjson.dumps(error.problem())
    return Response(error.status, body, headers, b"application/problem+json")


def response_headers(response: Response) -> Headers:
    """Return all headers of a response."""
    return [
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(response.body)),
        *response.headers,
        *position_headers(response.position),
    ]


async def send_response(send: Send, response: Response, incoming: Incoming) -> None:
    """Send the response. After an error, discard what the client is still sending first: closing
    the connection at once would reset it, and the response would be lost. A body that has arrived
    is left unread.
    """
    headers = response_headers(response)
    received = incoming.complete or incoming.peer.whole
    lingers = response.status >= 400 and not received
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": lingers})
    if lingers:
        await _discard_rest(incoming)
        await send({"type": "http.response.body", "body": b""})


async def send_stream(
    send: Send, stream: StreamingResponse, incoming: Incoming, peer: Peer
) -> None:
    """Send the response chunk by chunk until it ends or the client disconnects. An error aborts
    the connection, so that a truncated response does not look complete.
    """
    headers = [
        (b"content-type", stream.content_type),
        *stream.headers,
        *position_headers(stream.position),
    ]
    try:
        async with contextlib.aclosing(stream.body) as body:
            await send({"type": "http.response.start", "status": stream.status, "headers": headers})
            # the server keeps a head until a part of the body comes, and the first may fail
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            await _send_chunks(send, body, peer)
    except Exception:
        peer.drop()
        while not peer.gone and (await incoming())["type"] != "http.disconnect":
            pass  # until the server has noticed
        raise
    finally:
        await stream.close()


async def _send_chunks(send: Send, body: AsyncGenerator[bytes, None], peer: Peer) -> None:
    async for chunk in body:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if peer.gone:
            return
    await send({"type": "http.response.body", "body": b""})


async def _discard_rest(incoming: Incoming) -> None:
    left = limits.BODY_BYTES_MAX
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.ABANDON_S):
            while left > 0 and not incoming.complete:
                left -= len((await incoming()).get("body", b""))
