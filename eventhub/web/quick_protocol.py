"""The HTTP protocol of the hub, with emits that need neither a parser nor ASGI. Plain module.

An emit request whose head is that of an earlier one on its connection, and which arrives as a
whole, is answered by `QuickEmits`. All others, and all other routes, take the usual way.

Composition root.
"""

import asyncio
from typing import Any

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.http.quick_emits import KnownHead, QuickEmits
from eventhub.web.server import HubHttpProtocol, head_of

log = get_logger(__name__)
QUICK_EMITS = "eventhub.quick_emits"  # where the application's state has them


class QuickHttpProtocol(HubHttpProtocol):
    """One connection of HTTP."""

    _known: KnownHead | None = None
    _task: asyncio.Task[None] | None = None  # answers the present request
    _in_message = False  # the parser is within a message
    _first = b""  # data with which the present message began
    _waiting = b""  # data that came while a request was answered
    _answered_s = 0.0
    _ends = False  # the connection ends with the present answer

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._quick: QuickEmits | None = self.app_state.get(QUICK_EMITS)

    def data_received(self, data: bytes) -> None:
        if self._task is not None:
            self._wait(data)
            return
        known, quick = self._known, self._quick
        if known is not None and quick is not None and self._is_between():
            body = known.body_of(data)
            if body is not None and quick.is_on:
                self._task = self.loop.create_task(self._answer(quick, known, body))
                return
        if not self._in_message:
            self._first = data
        super().data_received(data)
        self._first = b""

    def on_message_begin(self) -> None:
        self._in_message = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        first, self._first = self._first, b""
        if first and self._quick is not None:
            super().on_headers_complete()
            self._known = self._quick.known(self.scope, first) or self._known
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_message = False
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for long; quick answers set no timer."""
        left_s = self._answered_s + self.timeout_keep_alive - self.loop.time()
        if self._task is not None:
            left_s = self.timeout_keep_alive
        if left_s <= 0:
            super().timeout_keep_alive_handler()
        elif not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(
                left_s, self.timeout_keep_alive_handler
            )

    def shutdown(self) -> None:
        if self._task is None:
            super().shutdown()
        else:
            self._ends = True
            self._peer.stop()

    def _is_between(self) -> bool:
        """Return whether the connection waits for a request, and may have one now."""
        return (
            not self._in_message
            and self.cycle.response_complete
            and not (self._refused or self.pipeline or self.flow.write_paused)
            and (self.limit_concurrency or 0) > len(self.connections)
        )

    def _wait(self, data: bytes) -> None:
        """Keep data until the present request is answered: answers have the order of requests."""
        self._waiting += data
        if len(self._waiting) > limits.HEAD_BYTES_MAX:
            self.flow.pause_reading()

    async def _answer(self, quick: QuickEmits, known: KnownHead, body: bytes) -> None:
        """Answer a request, then take the next one."""
        try:
            response, headers = await quick.answer(known, body, self._peer)
            all_headers = [*self.server_state.default_headers, *headers]
            if self._ends:  # since the request began
                all_headers.append((b"connection", b"close"))
            answer = head_of(response.status, all_headers) + response.body
            if not self.transport.is_closing():
                self.transport.write(answer)
        except Exception:
            log.exception("quick_emit_failed")
            self.transport.close()
        self._task = None
        self.server_state.total_requests += 1
        self._answered_s = self.loop.time()
        if self._ends:
            self.transport.close()
        elif self._waiting and not self.transport.is_closing():
            data, self._waiting = self._waiting, b""
            self.flow.resume_reading()
            self.data_received(data)
