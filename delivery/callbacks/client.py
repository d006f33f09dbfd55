"""An HTTP/1.1 client for one kind of request: POST, no redirect, no proxy, no cookie, and answers
of which little is taken. Connections are kept and used again. Plain module.

A general client costs three times as much for each request, and most of what a delivery costs.
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import NamedTuple

import httptools

from delivery.callbacks.guard import Guard, Place
from eventhub.base import limits


class NoHttp(Exception):
    """The answer is no HTTP, or its headers are too large."""


class Answer(NamedTuple):
    """What came back. Of a body longer than the bound there is only the beginning."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first of that name (lower case)."""
        return next((value for found, value in self.headers if found.lower() == name), None)


class _Dropped(ConnectionError):
    """The other side closed a kept connection before it answered."""


class Connection(asyncio.Protocol):
    """One connection, with one request on it at a time.

    Its parser refers to it. Once it is lost it has none: garbage in cycles is collected rarely in a
    process of many objects.
    """

    _parser: httptools.HttpResponseParser

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._begin()
        self.kept = False  # it may carry another request
        self.idle_since_s = 0.0

    def _begin(self) -> None:
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = 0  # parsed, also of trailers
        self._head_bytes = 0  # received until the head was complete
        self._head_done = False
        self._body = b""
        self._body_bytes = 0
        self._patience: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        return self.kept and self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes) -> Awaitable[Answer]:
        """Send a request; wait for what is returned. Raises OSError and NoHttp."""
        if self._transport is None:
            raise ConnectionError("the connection was closed at once")
        self._begin()
        self._parser = httptools.HttpResponseParser(self)
        self.kept = False
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiter

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.kept = False
        if self._head_done:
            self._end(keep=False)
        elif not self._head_bytes:
            self._fail(_Dropped("the connection was closed without an answer"))
        else:
            self._fail(ConnectionError("the connection was closed in the middle of the answer"))
        self.__dict__.pop("_parser", None)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.drop()  # nobody asked
            return
        if not self._head_done:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(NoHttp(str(error.__context__ or error)))
        if not self._head_done and self._head_bytes > limits.CALLBACK_HEADERS_BYTES_MAX:
            self._fail(NoHttp("the answer's headers are too large"))
        if self._head_done and self._waiter is not None and self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(limits.CALLBACK_BODY_S_MAX, self._cut)

    # what the parser calls

    def on_status(self, reason: bytes) -> None:
        self._reason = reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if (
            len(self._headers) >= limits.CALLBACK_HEADERS_COUNT_MAX
            or self._header_bytes > limits.CALLBACK_HEADERS_BYTES_MAX
        ):
            raise NoHttp("the answer's headers are too large or too many")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_done = self._parser.get_status_code() >= 200

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        room = limits.CALLBACK_ANSWER_CHARS_STORED_MAX - len(self._body)
        if room > 0:
            self._body += data[:room]
        if self._body_bytes > limits.CALLBACK_ANSWER_BYTES_READ_MAX:
            self._end(keep=False)

    def on_message_complete(self) -> None:
        if self._head_done:
            self._end(keep=self._parser.should_keep_alive())
        self._headers = []  # of an interim answer

    def _cut(self) -> None:
        """The status has said how the try ended, so nobody waits long for a body."""
        self._end(keep=False)

    def _end(self, *, keep: bool) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            return
        if self._patience is not None:
            self._patience.cancel()
        self.kept = keep
        if not keep:
            self.drop()
        if not waiter.done():
            headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in self._headers]
            status = self._parser.get_status_code()
            waiter.set_result(Answer(status, self._reason.decode("latin-1"), headers, self._body))

    def _fail(self, error: Exception) -> None:
        waiter, self._waiter = self._waiter, None
        self.drop()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


class Client:
    """Posts, and keeps connections for the next time. The slots bound how many there are."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._kept: dict[Place, list[Connection]] = {}
        self._swept_s = time.monotonic()

    async def post(self, place: Place, request: bytes) -> Answer:
        """The answer to a request's bytes. Raises OSError and UnicodeError as `Guard.connect`,
        NoHttp, and TimeoutError when it all takes too long.
        """
        async with asyncio.timeout(limits.CALLBACK_TIMEOUT_S_MAX):
            kept = self._take(place)
            if kept is not None:
                try:
                    return await self._exchange(place, kept, request)
                except _Dropped:
                    pass  # it was closed while nobody used it: the request was not seen
            async with asyncio.timeout(limits.CALLBACK_CONNECT_TIMEOUT_S_MAX):
                made = await self._guard.connect(place, Connection)
            return await self._exchange(place, made, request)

    def close(self) -> None:
        for kept in self._kept.values():
            for connection in kept:
                connection.drop()
        self._kept.clear()

    async def _exchange(self, place: Place, connection: Connection, request: bytes) -> Answer:
        try:
            answer = await connection.send(request)
        except BaseException:
            connection.drop()
            raise
        if connection.usable:
            connection.idle_since_s = time.monotonic()
            self._kept.setdefault(place, []).append(connection)
        return answer

    def _take(self, place: Place) -> Connection | None:
        """A kept connection that is still open, the one used last."""
        now_s = time.monotonic()
        if now_s - self._swept_s > limits.CALLBACK_KEEP_ALIVE_S:
            self._sweep(now_s)
        kept = self._kept.get(place)
        while kept:
            connection = kept.pop()
            fresh = now_s - connection.idle_since_s < limits.CALLBACK_KEEP_ALIVE_S
            if connection.usable and fresh:
                return connection
            connection.drop()
        return None

    def _sweep(self, now_s: float) -> None:
        """Close what was not used for long."""
        self._swept_s = now_s
        for place, kept in list(self._kept.items()):
            old = [c for c in kept if now_s - c.idle_since_s >= limits.CALLBACK_KEEP_ALIVE_S]
            for connection in old:
                connection.drop()
                kept.remove(connection)
            if not kept:
                del self._kept[place]
