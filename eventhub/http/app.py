"""The hot doors as one ASGI application in front of Django: what no door takes goes on, with its
body read. Plain module.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from eventhub.access.authorizer import Authorizer
from eventhub.base import limits, metrics
from eventhub.base.errors import BodyTooLarge, EventHubError, MethodNotAllowed
from eventhub.base.fair_queue import Admission
from eventhub.base.logs import get_logger
from eventhub.eventlog.log import Log
from eventhub.http.health import Health
from eventhub.http.messages import (
    Disconnected,
    Headers,
    Incoming,
    Message,
    Receive,
    Response,
    Scope,
    Send,
    StreamingResponse,
    content_length,
    peer_of,
    problem_response,
    read_body,
    require_one_credential,
    send_response,
    send_stream,
)
from eventhub.http.routes import Call, Route
from eventhub.types.registry import TypeRegistry

log = get_logger(__name__)
_CREDENTIALS = (b"authorization", b"cookie")
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class RouteServices(NamedTuple):
    """What the doors of a process share."""

    log: Log
    authorizer: Authorizer
    types: TypeRegistry
    health: Health
    emits: Admission  # requests that are parsed and appended at a time


class Router:
    """Answers the requests of a table of doors, passes all others to `inner`."""

    def __init__(self, inner: AsgiApp, doors: Sequence[Route], house: RouteServices) -> None:
        self._inner = inner
        self._house = house
        self._routes = [(door.method, door.pattern(), door) for door in doors]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        incoming = Incoming(receive, peer_of(scope))
        allowed = []
        for route_method, pattern, door in self._routes:
            if found := pattern.fullmatch(path):
                if method == route_method:
                    call = Call(*self._house, scope, incoming, found.groups())
                    await self._answer(door, call, incoming, send)
                    return
                allowed.append(route_method)
        if allowed:
            error = MethodNotAllowed(allow=", ".join(allowed))
            await send_response(send, problem_response(error, path), incoming)
            return
        await self._pass_on(scope, incoming, send)

    async def _pass_on(self, scope: Scope, incoming: Incoming, send: Send) -> None:
        """Django waits for a body as long as the caller likes; here it is read within bounds
        before.
        """
        try:
            body = await _body_for_django(scope["headers"], incoming)
        except Disconnected:
            return
        except EventHubError as error:
            await send_response(send, problem_response(error, scope["path"]), incoming)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_read() -> Message:
            if whole:
                return whole.pop()
            while (message := await incoming())["type"] != "http.disconnect":
                pass  # of a body that was too long, so that the answer is not lost
            return message

        await self._inner(scope, receive_read, send)

    async def _answer(self, route: Route, call: Call, incoming: Incoming, send: Send) -> None:
        try:
            answer = await _run(route, call)
        except Disconnected:
            return
        metrics.http_requests(route.path, answer.status).inc()
        if isinstance(answer, Response):
            await send_response(send, answer, incoming)
            return
        try:
            await send_stream(send, answer, incoming, incoming.peer)
        except Exception:
            log.exception("stream_failed", door=route.path)


async def _body_for_django(headers: Headers, incoming: Incoming) -> bytes:
    """The body; of a caller that shows no credential, what a login needs at most. Of a longer one
    there comes something that is too long for a login as well: Django then says who may send it,
    and counts it where logins are counted.

    Raises InvalidField for more than one credential, BodyTooLarge, RequestTimeout, Disconnected.
    """
    require_one_credential(headers)
    length = content_length(headers)
    if any(name in _CREDENTIALS for name, _ in headers):
        return await read_body(incoming, length, bytes_max=limits.MANAGE_BODY_BYTES_MAX)
    if length is not None and length > limits.MANAGE_BODY_BYTES_MAX:
        raise BodyTooLarge(bytes_max=limits.MANAGE_BODY_BYTES_MAX)
    try:
        return await read_body(incoming, length, bytes_max=limits.LOGIN_BODY_BYTES_MAX)
    except BodyTooLarge:
        return b" " * (limits.LOGIN_BODY_BYTES_MAX + 1)


async def _run(route: Route, call: Call) -> Response | StreamingResponse:
    try:
        return await route.handler(call)
    except EventHubError as error:
        if error.status == 500:
            log.error("door_failed", door=route.path, code=error.code, detail=error.message)
        return problem_response(error, route.path)
    except Disconnected:
        raise
    except Exception:
        log.exception("door_failed", door=route.path)
        return problem_response(EventHubError(), route.path)
