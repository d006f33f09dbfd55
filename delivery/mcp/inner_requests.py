"""Requests to the hub's own API within a request of a caller: with its credential, in its process,
and through the same routes, so that they have the same checks, limits and audit trail. Plain
module.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import orjson

from delivery.listening.served import EventsCaller
from eventhub.base import limits
from eventhub.base.errors import BodyTooLarge
from eventhub.http.messages import Headers, Message, Receive, Scope, Send

App = Callable[[Scope, Receive, Send], Awaitable[None]]
_KEPT = (b"authorization", b"host", b"eventhub-session", b"x-request-id")


class McpCaller(NamedTuple):
    """Who sent a message, and with which HTTP request."""

    events: EventsCaller
    scope: Scope


class InnerRequest(NamedTuple):
    """A request of the API. `body`: sent as JSON; None: there is none."""

    method: str
    path: str
    query: bytes = b""
    body: dict[str, Any] | None = None


class InnerAnswer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes


async def send_inner(app: App, scope: Scope, request: InnerRequest) -> InnerAnswer:
    """Return the application's answer to a request as if the caller of `scope` had sent it. Raises
    BodyTooLarge if the answer is too long.
    """
    body = b"" if request.body is None else orjson.dumps(request.body)
    headers: Headers = [(name, value) for name, value in scope["headers"] if name in _KEPT]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    inner = {
        **scope,
        "method": request.method,
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query,
        "headers": headers,
        "extensions": {},  # its connection is not that of the caller
    }
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    status, chunks = 0, list[bytes]()

    async def receive() -> Message:
        if whole:
            return whole.pop()
        await asyncio.get_running_loop().create_future()
        raise AssertionError  # it never disconnects

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            return
        chunks.append(message.get("body", b""))
        if sum(map(len, chunks)) > limits.MCP_TOOL_BYTES_MAX:
            raise BodyTooLarge(
                "The answer is too long; ask for less.", bytes_max=limits.MCP_TOOL_BYTES_MAX
            )

    await app(inner, receive, send)
    return InnerAnswer(status, b"".join(chunks))
