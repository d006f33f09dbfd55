"""The websocket door: a Channels consumer that hands messages to the pump and its frames to the
socket. Django module.
"""

import asyncio
from contextlib import ExitStack
from typing import Any

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from delivery.listening.frames import SUBPROTOCOLS, Frame, frames_for
from delivery.listening.keeper import Keeper
from delivery.listening.listener import Sources
from delivery.listening.pump import Outlet, Pump
from delivery.listening.query import token_of
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import EventHubError, InvalidField, NotFound, Unauthenticated
from eventhub.base.logs import get_logger
from eventhub.http.messages import Message, Receive, Scope, Send, problem_response, read_head

log = get_logger(__name__)

CLOSE_UNAUTHENTICATED = 4401
CLOSE_FAILED = 1011


class SessionConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One socket. The handshake (WebSocketRoute) has authorised it already."""

    def __init__(self, *, sources: Sources, keeper: Keeper) -> None:
        super().__init__()
        self._sources = sources
        self._keeper = keeper
        self._pumping: asyncio.Task[None] | None = None
        self._second = 0
        self._messages = 0

    async def dispatch(self, message: Message) -> None:
        """Call the handler. Channels closes Django's old connections before, in a thread, for each
        message; nothing here uses one, and thousands of sockets waited for that thread.
        """
        await getattr(self, get_handler_name(message))(message)

    async def websocket_disconnect(self, message: Message) -> None:
        await self.disconnect(message["code"])
        raise StopConsumer

    async def connect(self) -> None:
        subprotocol = chosen_subprotocol(self.scope)
        await self.accept(subprotocol)
        outlet = Outlet(frames_for(subprotocol), self._send)
        credential, principal, place = self.scope["eventhub"]
        self._pump = Pump(self._sources, outlet, credential, principal)
        self._keeper.add(self._pump, self)
        place.close()
        self._pumping = asyncio.create_task(self._run())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self._pace()
        await self._pump.handle(text_data if text_data is not None else bytes_data or b"")

    async def disconnect(self, code: int) -> None:
        if self._pumping is not None:
            self._keeper.remove(self._pump)
            self._pumping.cancel()
            await asyncio.gather(self._pumping, return_exceptions=True)
            await self._pump.close()

    async def _run(self) -> None:
        """Pump until the socket ends; a refused credential ends it with a reason."""
        try:
            await self._pump.run()
        except Unauthenticated as error:
            frames = frames_for(chosen_subprotocol(self.scope))
            await self._send([frames.message({"op": "error", **error.problem()})])
            await self.close(CLOSE_UNAUTHENTICATED, error.code)
        except OSError:
            pass  # the reader went away while a frame was being sent
        except Exception:
            log.exception("socket_failed")
            await self.close(CLOSE_FAILED, "internal")

    async def _send(self, frames: list[Frame]) -> None:
        """All at once where the server can (eventhub/websocket.py)."""
        at_once = self.scope.get("extensions", {}).get("eventhub.send_frames")
        if at_once is not None:
            await at_once(frames)
            return
        for frame in frames:
            kind = "text" if isinstance(frame, str) else "bytes"
            await self.base_send({"type": "websocket.send", kind: frame})

    def abandon(self, frame: Frame) -> None:
        """Say a last word without waiting for room, and drop the connection."""
        if self._pumping is not None:
            self._pumping.cancel()
        abandon = self.scope.get("extensions", {}).get("eventhub.abandon")
        if abandon is not None:
            abandon(frame)

    def unsent_bytes(self) -> int:
        """What the socket has not taken yet."""
        unsent = self.scope.get("extensions", {}).get("eventhub.unsent_bytes")
        return 0 if unsent is None else int(unsent())

    async def _pace(self) -> None:
        """Read no more messages in a second than the limit; the rest waits in the socket."""
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second, self._messages = second, 0
        self._messages += 1
        if self._messages > limits.MESSAGES_PER_S_MAX:
            await asyncio.sleep(1)


class WebSocketRoute:
    """The handshake of /v1/ws: authorises before accepting, and refuses with a problem document."""

    def __init__(self, sources: Sources, keeper: Keeper) -> None:
        self._authorizer = sources.authorizer
        self._keeper = keeper
        self._catch_up = sources.catch_up
        self._consumer = SessionConsumer.as_asgi(sources=sources, keeper=keeper)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["path"] != "/v1/ws":
                raise NotFound("The websocket is at /v1/ws.", field="path")
            credential, principal = await self._authorise(scope)
            chosen_subprotocol(scope)
            place = ExitStack()
            place.enter_context(self._keeper.place(principal))
            await self._catch_up.arrival(principal.party)
        except EventHubError as error:
            await receive()  # the connect message
            await _refuse(error, send)
            return
        with place:
            scope["eventhub"] = (credential, principal, place)
            await self._consumer(scope, receive, send)

    async def _authorise(self, scope: Scope) -> tuple[str, Principal]:
        """By header, or for browsers by `?token=`, which takes connection tokens only: keys stay
        out of URLs.
        """
        headers = scope["headers"]
        token = token_of(scope.get("query_string", b""), headers, "token")
        credential = read_head(headers).credential if token is None else token
        return credential, await self._authorizer.authenticate(credential)


def chosen_subprotocol(scope: dict[str, Any] | Scope) -> str | None:
    """The first known of those offered;

    None if none was. Raises InvalidField when none is known.
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
