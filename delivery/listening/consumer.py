"""The websocket transport: a Channels consumer that passes messages to the pump, and its frames to
the socket. Django module.
"""

import asyncio
from contextlib import ExitStack
from typing import Any

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from delivery.listening.frames import SUBPROTOCOLS, Frame, frames_for
from delivery.listening.pump import SendFrames, SocketPump, SocketServices, SocketWriter
from delivery.listening.query import credential_of
from delivery.listening.reader_monitor import ReaderMonitor
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import (
    AddressNotAllowed,
    EventHubError,
    InvalidField,
    NotFound,
    Unauthenticated,
)
from eventhub.base.logs import get_logger
from eventhub.http.messages import Message, Receive, Scope, Send, problem_response
from eventhub.http.origins import Origins
from eventhub.http.query import parse_query

log = get_logger(__name__)

_PARAMETERS = frozenset(("access_token",))
_CLOSE = {401: 4401, 403: 4403}  # by the status of the refusal
CLOSE_FAILED = 1011
_ACK = b'"ack"'


class WebSocketConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One socket, authorised by the handshake (WebSocketRoute)."""

    def __init__(self, *, services: SocketServices, monitor: ReaderMonitor) -> None:
        super().__init__()
        self._services = services
        self._monitor = monitor
        self._pumping: asyncio.Task[None] | None = None
        self._second = 0
        self._messages = 0.0  # in this second
        self._send_frames: SendFrames = self._send_each
        self._handled = 0  # messages that `receive` got

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the socket. It ends without a message about it if the client leaves while it is
        answered.
        """
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._end()

    async def dispatch(self, message: Message) -> None:
        """Call the handler. Channels' own dispatch first closes old Django connections, in one
        thread for all sockets and for each message; this consumer uses none.
        """
        await getattr(self, get_handler_name(message))(message)

    async def websocket_disconnect(self, message: Message) -> None:
        raise StopConsumer

    async def connect(self) -> None:
        subprotocol = select_subprotocol(self.scope)
        await self.accept(subprotocol)
        extensions = self.scope.get("extensions", {})
        self._send_frames = extensions.get("eventhub.send_frames", self._send_each)
        direct = extensions.get("eventhub.direct")
        writer = SocketWriter(frames_for(subprotocol), self._send_frames, direct)
        credential, principal, reservation = self.scope["eventhub"]
        self._pump = SocketPump(self._services, writer, credential, principal)
        self._monitor.add(self._pump, self)
        reservation.close()
        offer_messages = extensions.get("eventhub.take_messages")
        if offer_messages is not None:
            offer_messages(self._take)
        self._pumping = asyncio.create_task(self._run())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not self._in_pace(1):
            await asyncio.sleep(self._second + 1 - asyncio.get_running_loop().time())
        await self._pump.handle(text_data if text_data is not None else bytes_data or b"")
        self._handled += 1

    def _take(self, data: bytes, queued: int) -> bool:
        """Handle an acknowledgement without a task; return False for any other message, for one
        that follows messages that are not handled yet, and for one to refuse.
        """
        if queued != self._handled or _ACK not in data:
            return False
        may_take = self._in_pace(limits.ACKNOWLEDGEMENT_WEIGHT)
        return may_take and self._pump.take(data)

    async def _end(self) -> None:
        """End all that serves the socket. A task refers to where it was cancelled, with the frames
        that it was sending: without the cycle all of it is freed at once.
        """
        pumping, self._pumping = self._pumping, None
        if pumping is not None:
            self._monitor.remove(self._pump)
            pumping.cancel()
            await asyncio.gather(pumping, return_exceptions=True)
            await self._pump.close()

    async def _run(self) -> None:
        """Run the pump until the socket ends; close the socket with a reason if the credential is
        refused.
        """
        try:
            await self._pump.run()
        except (Unauthenticated, AddressNotAllowed) as error:
            frames = frames_for(select_subprotocol(self.scope))
            await self._send_frames([frames.message({"op": "error", **error.problem()})])
            await self.close(_CLOSE[error.status], error.code)
        except OSError:
            pass  # the reader disconnected while a frame was being sent
        except Exception:
            log.exception("socket_failed")
            await self.close(CLOSE_FAILED, "internal")

    async def _send_each(self, frames: list[Frame]) -> None:
        """Send frames by a server other than that of eventhub/web/websocket.py."""
        for frame in frames:
            kind = "text" if isinstance(frame, str) else "bytes"
            await self.base_send({"type": "websocket.send", kind: frame})

    def abandon(self, frame: Frame) -> None:
        """Send a last frame without waiting for the buffer, and drop the connection."""
        if self._pumping is not None:
            self._pumping.cancel()
        abandon = self.scope.get("extensions", {}).get("eventhub.abandon")
        if abandon is not None:
            abandon(frame)

    def unsent_bytes(self) -> int:
        """Return the bytes that the socket has not taken yet."""
        unsent = self.scope.get("extensions", {}).get("eventhub.unsent_bytes")
        return 0 if unsent is None else int(unsent())

    def _in_pace(self, weight: float) -> bool:
        """Count a message; return False for too many in a second: the rest waits in the socket."""
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second, self._messages = second, 0
        self._messages += weight
        return self._messages <= limits.MESSAGES_PER_S_MAX


class WebSocketRoute:
    """The handshake of /v1/ws: checks the page's origin and authorises before it accepts; refuses
    with a problem document.
    """

    def __init__(self, services: SocketServices, monitor: ReaderMonitor, origins: Origins) -> None:
        self._origins = origins
        self._authorizer = services.listening.authorizer
        self._monitor = monitor
        self._catch_up = services.listening.catch_up
        self._consumer = WebSocketConsumer.as_asgi(services=services, monitor=monitor)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as reservation:
            try:
                if scope["path"] != "/v1/ws":
                    raise NotFound("The websocket is at /v1/ws.", field="path")
                self._origins.require(scope["headers"])
                credential, principal = await self._authorise(scope)
                select_subprotocol(scope)
                reservation.enter_context(await self._monitor.admit(principal))
                await self._catch_up.handshake(principal.queue_owner)
            except EventHubError as error:
                await receive()  # the connect message
                await _refuse(error, send)
                return
            scope["eventhub"] = (credential, principal, reservation)
            await self._consumer(scope, receive, send)

    async def _authorise(self, scope: Scope) -> tuple[str, Principal]:
        """Return the credential of the request and its principal."""
        query_string = scope.get("query_string", b"")
        credential = credential_of(query_string, scope["headers"])
        principal = await self._authorizer.authenticate(credential)
        principal.identify()
        parse_query(query_string, _PARAMETERS)
        return credential, principal


def select_subprotocol(scope: dict[str, Any] | Scope) -> str | None:
    """Return the first known subprotocol of those offered; None if none was offered. Raises
    InvalidField when none is known.
    """
    offered = scope.get("subprotocols") or []
    for name in offered:
        if name in SUBPROTOCOLS:
            return str(name)
    if offered:
        message = f"Offer one of the subprotocols {', '.join(SUBPROTOCOLS)}."
        raise InvalidField(message, field="sec-websocket-protocol")
    return None


async def _refuse(error: EventHubError, send: Send) -> None:
    answer = problem_response(error)
    headers = [(b"content-type", answer.content_type), *answer.headers]
    await send(
        {"type": "websocket.http.response.start", "status": answer.status, "headers": headers}
    )
    await send({"type": "websocket.http.response.body", "body": answer.body})
