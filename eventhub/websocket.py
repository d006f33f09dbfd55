"""uvicorn's websocket protocol with one thing more: a reader that takes nothing can be given up.

Composition root.

ASGI offers no way to close a socket whose buffer is full: the close would wait for the reader too.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from eventhub import limits


class HubWebSocketProtocol(WebSocketsSansIOProtocol):
    """Puts `eventhub.abandon` and `eventhub.unsent_bytes` into the scope's extensions."""

    CLOSE_RESUME = 4408

    async def run_asgi(self) -> None:
        extensions: dict[str, Any] = self.scope["extensions"]  # type: ignore[assignment]
        extensions["eventhub.abandon"] = self.abandon
        extensions["eventhub.unsent_bytes"] = self.transport.get_write_buffer_size
        await super().run_asgi()

    def abandon(self, frame: str | bytes) -> None:
        """Queue a last frame and a close behind what waits, and drop the connection in any case
        soon after.
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
