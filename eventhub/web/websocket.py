"""uvicorn's websocket protocol with six additions: a slow consumer can be disconnected, a wrong
handshake is answered with a problem document, text that is not UTF-8 closes the socket without a
traceback, a process that stops names a pause, the application can take a message without a
task, and a message may have any number of frames. Plain module.

Composition root.

ASGI has no way to close a socket whose buffer is full: the close would wait for the client too.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame as LibraryFrame
from websockets.frames import Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from eventhub.base import limits
from eventhub.base.errors import BadRequest, EventHubError, Unavailable
from eventhub.event.compiled import transcoder

# takes a message before it is queued, with the number of those that were queued; False: not taken
TakeMessage = Callable[[bytes, int], bool]
_FRAMES_KEPT_MAX = 1_000  # of one message from a client
PreparedFrames = bytes | list[LibraryFrame]  # those to be compressed for each connection


class _HubConnection(ServerProtocol):
    """Refuses with a problem document, and can be freed without the garbage collector."""

    def reject(self, status: int, text: str) -> Response:
        return self.refuse(status, BadRequest(text.strip()) if status < 500 else EventHubError())

    def refuse(self, status: int, error: EventHubError) -> Response:
        """Return the response for an error, with this status."""
        body = orjson.dumps({**error.problem(), "status": int(status)})
        response = super().reject(status, body.decode())
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/problem+json"
        return response

    def end(self) -> None:
        """Drop what refers to the connection from itself."""
        self.parser.close()
        self.parser_exc = self.handshake_exc = None


class HubWebSocketProtocol(WebSocketsSansIOProtocol):
    """Adds `eventhub.abandon`, `eventhub.direct` (itself), `eventhub.send_frames`,
    `eventhub.take_messages` and `eventhub.unsent_bytes` to the scope's extensions.
    """

    conn: _HubConnection
    CLOSE_RESUME = 4408
    CLOSE_NO_UTF8 = 1007
    CLOSE_RESTART = 1012

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self._take_message: TakeMessage | None = None
        self._queued = 0  # messages
        self.variant = ""
        self._deflate: PerMessageDeflate | None = None
        self.conn.__class__ = _HubConnection  # uvicorn has no setting for it

    def handle_parser_exception(self) -> None:
        """Answer with an error before the handshake, when no close frame can be sent."""
        if self.handshake_initiated:
            super().handle_parser_exception()
            return
        self.conn.send_response(self.conn.reject(400, "Not a websocket handshake."))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.handshake_complete = self.close_sent = True
        self.transport.close()

    def shutdown(self) -> None:
        """Close with a pause after which the client should connect again: another one for each
        socket, so that they do not all come at once.
        """
        if self.handshake_complete and not self.close_sent and self.conn.state is OPEN:
            self.conn.send_close(self.CLOSE_RESTART, restart_reason(len(self.connections)))
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.queue.put_nowait({"type": "websocket.disconnect", "code": self.CLOSE_RESTART})
        elif not self.handshake_complete and self.initial_response is None:
            self.conn.send_response(self._stopping())
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.handshake_complete = self.close_sent = True  # nothing more is sent
        super().shutdown()

    def handle_cont(self, event: LibraryFrame) -> None:
        """Join frames of a message that has many: only its bytes are bounded, and frames may be
        empty.
        """
        super().handle_cont(event)
        if len(self.frames) > _FRAMES_KEPT_MAX:
            self.frames = [b"".join(self.frames)]

    def send_receive_event_to_app(self) -> None:
        """Offer the message to the application, and queue it if that does not take it. Close with
        1007 for text that is not UTF-8 (RFC 6455, 8.1), without a log message.
        """
        if len(self.frames) == 1 and not self.close_sent and self._is_taken(self.frames[0]):
            self.frames = []
            return
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.send_close(self.CLOSE_NO_UTF8, "text that is not UTF-8")
                super().handle_parser_exception()
                return
        self._queued += 1
        super().send_receive_event_to_app()

    def _stopping(self) -> Response:
        """Return the refusal of a handshake that a process cannot complete, because it stops."""
        error = Unavailable(
            "This web process stops; connect again.", retry_after_s=_after_restart()
        )
        response = self.conn.refuse(error.status, error)
        for name, value in error.headers:
            response.headers[name.decode()] = value.decode()
        return response

    async def run_asgi(self) -> None:
        extensions: dict[str, Any] = self.scope["extensions"]
        if self.conn.extensions:
            [deflate] = self.conn.extensions
            assert isinstance(deflate, PerMessageDeflate)  # noqa: S101 - the only one that is offered
            self._deflate = deflate
        self.variant = "plain" if self._deflate is None else "deflate"
        extensions["eventhub.abandon"] = self.abandon
        extensions["eventhub.direct"] = self
        extensions["eventhub.send_frames"] = self.send_frames
        extensions["eventhub.take_messages"] = self._offer_messages
        extensions["eventhub.unsent_bytes"] = self.transport.get_write_buffer_size
        try:
            await super().run_asgi()
        finally:
            extensions.clear()  # they refer to the protocol, and it to them
            self._take_message = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.conn.end()

    def _offer_messages(self, take: TakeMessage) -> None:
        """Offer messages to the application from now on."""
        self._take_message = take

    def _is_taken(self, message: bytes) -> bool:
        return self._take_message is not None and self._take_message(message, self._queued)

    async def send_frames(self, frames: list[str | bytes]) -> None:
        """Send several messages with one write: a system call for each costs more than a frame."""
        if not self.writable.is_set():
            await self.writable.wait()
        if self.disconnected:
            raise ClientDisconnected
        if self.close_sent:
            return
        if self.conn.state is not OPEN:
            raise ClientDisconnected
        data = self._data(self.prepare(frames))
        self.transport.write(b"".join([*self.conn.data_to_send(), data]))

    def prepare(self, frames: Sequence[str | bytes]) -> PreparedFrames:
        """Return messages in the form that `write_prepared` takes, of any connection with the same
        `variant`.
        """
        if self._deflate is None:
            return uncompressed(frames)
        return [
            LibraryFrame(Opcode.TEXT, frame.encode())
            if isinstance(frame, str)
            else LibraryFrame(Opcode.BINARY, frame)
            for frame in frames
        ]

    def write_prepared(self, prepared: PreparedFrames) -> bool:
        """Write prepared messages at once; return False if the client takes none now."""
        if self.close_sent or self.disconnected or not self.writable.is_set():
            return False
        if self.transport.is_closing():
            return False
        self.transport.write(prepared if type(prepared) is bytes else self._data(prepared))
        return True

    def _data(self, prepared: PreparedFrames) -> bytes:
        """Return the bytes of messages; those to be compressed refer to messages before them, so
        each connection has its own.
        """
        if isinstance(prepared, bytes):
            return prepared
        assert self._deflate is not None  # noqa: S101
        parts: list[bytes | bytearray | memoryview] = []
        for frame in prepared:
            data = self._deflate.encode(frame).data
            parts += (_head(0xC0 | frame.opcode, len(data)), data)
        return b"".join(parts)

    def abandon(self, frame: str | bytes) -> None:
        """Queue a last frame and a close after the unsent bytes, and drop the connection soon after
        in any case.
        """
        if self.close_sent or self.transport.is_closing():
            return
        if isinstance(frame, str):
            self.conn.send_text(frame.encode())
        else:
            self.conn.send_binary(frame)
        self.conn.send_close(self.CLOSE_RESUME, "slow reader: resume from your cursor")
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.loop.call_later(limits.ABANDON_S, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """Close, and drop the connection soon after: the close of a client that does not read would
        wait for the unsent bytes, and its sessions would stay connected.
        """
        super().keepalive_timeout()
        self.loop.call_later(limits.ABANDON_S, self.transport.abort)


def _after_restart() -> int:
    """Return in how many seconds a refused client should connect again: not all at once."""
    return random.randint(1, limits.REFUSED_RECONNECT_S_MAX)  # noqa: S311


def restart_reason(sockets: int) -> str:
    """Return the reason in the close frame of a process that stops with so many sockets."""
    spread_s = min(sockets / limits.RECONNECTS_PER_S, limits.RECONNECT_PAUSE_S_MAX)
    return f"retry_after={random.uniform(0, spread_s):.2f}"  # noqa: S311


def uncompressed(frames: Sequence[str | bytes]) -> bytes:
    """Return the frames with their headers in the format of RFC 6455, 5.2: the library creates an
    object for each frame, which costs more than the rest of its work.
    """
    if transcoder is not None:
        return transcoder.websocket_messages([*frames])
    parts: list[bytes] = []
    for frame in frames:
        first, payload = (0x81, frame.encode()) if isinstance(frame, str) else (0x82, frame)
        parts += (_head(first, len(payload)), payload)
    return b"".join(parts)


def _head(first: int, size: int) -> bytes:
    """Return the header of a frame with so many bytes."""
    if size < 126:
        return bytes((first, size))
    if size < 0x10000:
        return bytes((first, 126, size >> 8, size & 0xFF))
    return bytes((first, 127)) + size.to_bytes(8)
