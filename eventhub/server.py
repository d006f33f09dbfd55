"""uvicorn's HTTP protocol with three things more: what is no HTTP is refused with a problem
document, headers must arrive in time, and only a GET can become a websocket.

Composition root.
"""

import asyncio
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from eventhub import limits
from eventhub.errors import BadRequest, EventHubError, RequestTimeout


class HubHttpProtocol(HttpToolsProtocol):
    """One connection."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_headers()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest(msg), b"400 Bad Request")

    def _should_upgrade(self) -> bool:
        return self.scope.get("method") == "GET" and super()._should_upgrade()

    def _await_headers(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(limits.HEADERS_TIMEOUT_S_MAX, self._headers_late)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _headers_late(self) -> None:
        error = RequestTimeout("The request's headers did not arrive in time; send them at once.")
        self._refuse(error, b"408 Request Timeout")

    def _refuse(self, error: EventHubError, status: bytes) -> None:
        if self.transport.is_closing():
            return
        body = orjson.dumps(error.problem())
        head = (
            b"HTTP/1.1 %s\r\ncontent-type: application/problem+json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % (status, len(body))
        )
        self.transport.write(head + body)
        self.transport.close()
