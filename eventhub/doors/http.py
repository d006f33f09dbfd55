"""The little HTTP that the hot doors need on bare ASGI: read a body within bounds, answer, answer
an error. Plain.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

import orjson

from eventhub import limits, metrics
from eventhub.errors import (
    BodyTooLarge,
    EventHubError,
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


class Answer(NamedTuple):
    """What a door answers."""

    status: int
    body: bytes
    headers: Headers
    content_type: bytes = b"application/json"


class Head(NamedTuple):
    """The headers that the doors look at."""

    credential: str
    content_type: str
    content_length: int | None


def read_head(headers: Headers) -> Head:
    """Raises Unauthenticated without a bearer credential, UnsupportedMediaType if encoded."""
    credential = content_type = ""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, text = value.partition(b" ")
            if scheme.lower() == b"bearer":
                credential = text.strip().decode("latin-1")
        elif name == b"content-type":
            content_type = value.split(b";", 1)[0].strip().lower().decode("latin-1")
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
    if not credential:
        raise Unauthenticated
    if len(credential) > limits.TOKEN_BYTES_MAX:
        raise Unauthenticated("The credential is too long to be a key or a token of this hub.")
    return Head(credential, content_type, content_length(headers))


def content_length(headers: Headers) -> int | None:
    """The announced length of the body; None for one that is sent in chunks, or has none."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            return int(value[:19])
    return None


async def read_body(
    receive: Receive, announced: int | None, *, bytes_max: int = limits.BODY_BYTES_MAX
) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as it is known, RequestTimeout, Disconnected."""
    if announced is not None and announced > bytes_max:
        raise BodyTooLarge(bytes_max=bytes_max)
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT_S_MAX):
            return await _read_all(receive, bytes_max)
    except TimeoutError:
        raise RequestTimeout(seconds_max=limits.BODY_TIMEOUT_S_MAX) from None


async def _read_all(receive: Receive, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
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


def problem_answer(error: EventHubError, door: str) -> Answer:
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
    return Answer(error.status, body, headers, b"application/problem+json")


class Incoming:
    """The caller's messages; `complete` when the whole body was taken."""

    __slots__ = ("_receive", "complete")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.complete = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.complete = not message.get("more_body")
        return message


async def send_answer(send: Send, answer: Answer, incoming: Incoming) -> None:
    """Answer. After a refusal, what the caller is still sending is taken before the end: where the
    connection is closed then, closing at once would reset it, and the answer would be lost.
    """
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", str(len(answer.body)).encode()),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    lingers = answer.status >= 400 and not incoming.complete
    await send({"type": "http.response.body", "body": answer.body, "more_body": lingers})
    if lingers:
        await _take_rest(incoming)
        await send({"type": "http.response.body", "body": b""})


async def _take_rest(incoming: Incoming) -> None:
    left = limits.BODY_BYTES_MAX
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.ABANDON_S):
            while left > 0 and not incoming.complete:
                left -= len((await incoming()).get("body", b""))
