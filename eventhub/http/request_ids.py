"""Begins each request: sets its caller's address and its request id, and returns the id in
`X-Request-Id`. Plain module.
"""

from collections.abc import Awaitable, Callable

from eventhub.base import caller
from eventhub.http.messages import Message, Receive, Scope, Send

HEADER = b"x-request-id"
_STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


def with_request_ids(app: AsgiApp) -> AsgiApp:
    """Wrap an application of HTTP or of a websocket. `scope["client"]` has the real address."""

    async def begin(scope: Scope, receive: Receive, send: Send) -> None:
        sent = b""
        for name, value in scope["headers"]:
            if name == HEADER:
                sent = value
                break
        request_id = caller.request_id_of(sent.decode("latin-1"))
        peer = scope.get("client")  # none on a Unix socket
        caller.arrive(address=str(peer[0]) if peer else "", request_id=request_id)
        header = (HEADER, request_id.encode())

        async def send_with_id(message: Message) -> None:
            if message["type"] in _STARTS:
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        await app(scope, receive, send_with_id)

    return begin
