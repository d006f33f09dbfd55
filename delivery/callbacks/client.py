"""An HTTP/1.1 client for callbacks: without redirects, proxies or cookies, and with a
bounded read of the response. Connections are kept alive and reused. Plain module.

A general client takes three times as long for each request, which is most of the cost of a
delivery.
"""

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from typing import NamedTuple

import httptools

from delivery.callbacks.guard import Guard, Origin
from eventhub.base import limits


class MalformedResponse(Exception):
    """The response is not HTTP, or its headers are too large."""


class CallbackResponse(NamedTuple):
    """A response. `is_complete`: False if the body is longer than the bound, took too long, or
    ended before its announced end; then its beginning is here.
    """

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    is_complete: bool = True

    def header(self, name: str) -> str | None:
        """Return the first header of the given name (lower case), or None."""
        return next((value for found, value in self.headers if found.lower() == name), None)


class _Dropped(ConnectionError):
    """The server closed a kept connection before it answered."""


class HttpConnection(asyncio.Protocol):
    """A connection with at most one request at a time.

    Connection and parser refer to each other. The parser is deleted when the connection is lost,
    because a process with many objects collects cycles rarely.
    """

    _parser: httptools.HttpResponseParser

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[CallbackResponse] | None = None
        self._answer_bytes_max = 0
        self._reset()
        self.reusable = False  # it may carry another request
        self.idle_since_s = 0.0

    def _reset(self) -> None:
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = 0  # parsed, trailers included
        self._head_bytes = 0  # received until the head was complete
        self._head_done = False
        self._body = b""
        self._body_bytes = 0
        self._body_timer: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        return self.reusable and self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, answer_bytes_max: int) -> Awaitable[CallbackResponse]:
        """Send a request; the awaitable gives the response, with so much of its body. Raise OSError
        and MalformedResponse.
        """
        if self._transport is None:
            raise ConnectionError("the connection was closed at once")
        self._reset()
        self._answer_bytes_max = answer_bytes_max
        self._parser = httptools.HttpResponseParser(self)
        self.reusable = False
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiter

    def drop(self) -> None:
        """Close the connection at once, also with a request under way."""
        if self._transport is not None:
            self._transport.abort()

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.reusable = False
        if self._head_done:
            self._end(keep=False, complete=self._ends_with_connection())
        elif not self._head_bytes:
            self._fail(_Dropped("the connection was closed without a response"))
        else:
            self._fail(ConnectionError("the connection was closed in the middle of the response"))
        self.__dict__.pop("_parser", None)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.drop()  # data without a request
            return
        if not self._head_done:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(MalformedResponse("the response switches to another protocol"))
        except httptools.HttpParserError as error:
            self._fail(MalformedResponse(str(error.__context__ or error)))
        if not self._head_done and self._head_bytes > limits.CALLBACK_HEADERS_BYTES_MAX:
            self._fail(MalformedResponse("the response's headers are too large"))
        if self._head_done and self._waiter is not None and self._body_timer is None:
            loop = asyncio.get_running_loop()
            # stop reading then: the status already decides the outcome of the attempt
            end = partial(self._end, keep=False)
            self._body_timer = loop.call_later(limits.CALLBACK_BODY_S_MAX, end)

    # --- called by the parser ---

    def on_status(self, reason: bytes) -> None:
        self._reason = reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if (
            len(self._headers) >= limits.CALLBACK_HEADERS_COUNT_MAX
            or self._header_bytes > limits.CALLBACK_HEADERS_BYTES_MAX
        ):
            raise MalformedResponse("the response's headers are too large or too many")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_done = self._parser.get_status_code() >= 200

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        space = self._answer_bytes_max - len(self._body)
        if space > 0:
            self._body += data[:space]
        if self._body_bytes > max(limits.CALLBACK_ANSWER_BYTES_READ_MAX, self._answer_bytes_max):
            self._end(keep=False)

    def on_message_complete(self) -> None:
        if self._head_done:
            self._end(keep=self._parser.should_keep_alive(), complete=True)
        self._headers = []  # of an interim (1xx) response

    def _ends_with_connection(self) -> bool:
        """Return whether the end of the connection is the end of the response."""
        names = {name.lower() for name, _ in self._headers}
        return names.isdisjoint({b"content-length", b"transfer-encoding"})

    def _end(self, *, keep: bool, complete: bool = False) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            return
        if self._body_timer is not None:
            self._body_timer.cancel()
        self.reusable = keep
        if not keep:
            self.drop()
        if not waiter.done():
            headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in self._headers]
            status = self._parser.get_status_code()
            reason = self._reason.decode("latin-1")
            complete = complete and self._body_bytes <= self._answer_bytes_max
            waiter.set_result(CallbackResponse(status, reason, headers, self._body, complete))

    def _fail(self, error: Exception) -> None:
        waiter, self._waiter = self._waiter, None
        self.drop()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


class HttpClient:
    """Sends requests and keeps connections for reuse. The slots of the dispatcher bound their
    number.
    """

    def __init__(
        self, guard: Guard, answer_bytes_max: int = limits.CALLBACK_ANSWER_CHARS_STORED_MAX
    ) -> None:
        self._guard = guard
        self._answer_bytes_max = answer_bytes_max
        self.resolve = guard.resolve
        self._idle: dict[Origin, list[HttpConnection]] = {}
        self._swept_s = time.monotonic()

    async def send(
        self,
        origin: Origin,
        request: bytes,
        answer_bytes_max: int | None = None,
        timeout_s: float | None = None,
    ) -> CallbackResponse:
        """Send a request and return the response, with so much of its body. Raise OSError and
        UnicodeError as `Guard.connect` does, MalformedResponse, and TimeoutError when it takes
        longer in total than `timeout_s` (None: the default).
        """
        answer_bytes_max = answer_bytes_max or self._answer_bytes_max
        async with asyncio.timeout(timeout_s or limits.CALLBACK_TIMEOUT_S_MAX):
            reusable = self._take(origin)
            if reusable is not None:
                try:
                    return await self._exchange(origin, reusable, request, answer_bytes_max)
                except _Dropped:
                    pass  # closed while idle: the server has not read the request
            async with asyncio.timeout(limits.CALLBACK_CONNECT_TIMEOUT_S_MAX):
                opened = await self._guard.connect(origin, HttpConnection)
            return await self._exchange(origin, opened, request, answer_bytes_max)

    def close(self) -> None:
        for reusable in self._idle.values():
            for connection in reusable:
                connection.drop()
        self._idle.clear()

    async def _exchange(
        self, origin: Origin, connection: HttpConnection, request: bytes, answer_bytes_max: int
    ) -> CallbackResponse:
        try:
            answer = await connection.send(request, answer_bytes_max)
        except BaseException:
            connection.drop()
            raise
        if connection.usable:
            connection.idle_since_s = time.monotonic()
            self._idle.setdefault(origin, []).append(connection)
        return answer

    def _take(self, origin: Origin) -> HttpConnection | None:
        """Return the idle connection that was used last, if one is still open."""
        now_s = time.monotonic()
        if now_s - self._swept_s > limits.CALLBACK_KEEP_ALIVE_S:
            self._sweep(now_s)
        reusable = self._idle.get(origin)
        while reusable:
            connection = reusable.pop()
            fresh = now_s - connection.idle_since_s < limits.CALLBACK_KEEP_ALIVE_S
            if connection.usable and fresh:
                return connection
            connection.drop()
        return None

    def _sweep(self, now_s: float) -> None:
        """Close connections that were idle for too long."""
        self._swept_s = now_s
        for origin, reusable in list(self._idle.items()):
            old = [c for c in reusable if now_s - c.idle_since_s >= limits.CALLBACK_KEEP_ALIVE_S]
            for connection in old:
                connection.drop()
                reusable.remove(connection)
            if not reusable:
                del self._idle[origin]
