"""The hot routes as one ASGI application in front of Django: a request that no route matches is
passed to Django, with its body already read. Plain module.
"""

from collections.abc import Awaitable, Callable, Sequence

from eventhub.base import limits, metrics, traced_call
from eventhub.base.errors import BodyTooLarge, EventHubError, MethodNotAllowed, UpgradeRequired
from eventhub.base.logs import get_logger
from eventhub.eventlog.stored import Cursor
from eventhub.http.call import Call, Handler, RouteServices, Subject, reply_position
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
    position_headers,
    problem_response,
    read_body,
    require_one_credential,
    send_response,
    send_stream,
)
from eventhub.http.routes import Route

log = get_logger(__name__)
_CREDENTIALS = (b"authorization", b"cookie")
_VARY = (b"vary", b"Authorization, Cookie")  # as on the routes of Django
_API = ("/v1/", "/mcp")
_WEBSOCKET = "/v1/ws"  # for requests that are no handshake: that has a scope of its own
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Router:
    """Answers the requests of a table of routes and passes all others to `inner`."""

    def __init__(self, inner: AsgiApp, routes: Sequence[Route], services: RouteServices) -> None:
        self._inner = inner
        self.services = services
        self._routes = [(route.pattern(), route.query_names, route) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        incoming = Incoming(receive, peer_of(scope))
        allowed = []
        for pattern, names, route in self._routes:
            if found := pattern.fullmatch(path):
                if method == route.method:
                    request = (scope, incoming, found.groups(), Subject())
                    call = Call(*self.services, *request, route.role, names)
                    await self._answer(route, call, incoming, send)
                    return
                allowed.append(route.method)
        if allowed or path == _WEBSOCKET:
            error = MethodNotAllowed(allow=", ".join(allowed)) if allowed else UpgradeRequired()
            await self._refuse(error, scope, incoming, send)
            return
        await self._pass_on(scope, incoming, send)

    def route_of(self, handler: Handler) -> Route:
        """Return the route that a handler serves."""
        return next(route for _, _, route in self._routes if route.handler is handler)

    async def _refuse(
        self, error: EventHubError, scope: Scope, incoming: Incoming, send: Send
    ) -> None:
        """Refuse a request that has reached no route."""
        position = await self._position(scope, error.status)
        response = problem_response(error)._replace(position=position)
        await send_response(send, response, incoming)

    async def _position(self, scope: Scope, status: int) -> Cursor | None:
        """Return the position of `system`, if the caller is known and the path is of the API."""
        if not scope["path"].startswith(_API):
            return None
        return await reply_position(self.services, scope["headers"], status, Subject())

    async def _pass_on(self, scope: Scope, incoming: Incoming, send: Send) -> None:
        """Read the body within limits of size and time, then call Django, which would wait for it
        without a limit.
        """
        try:
            body = await _body_for_django(scope["headers"], incoming)
        except Disconnected:
            return
        except EventHubError as error:
            await self._refuse(error, scope, incoming, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_read() -> Message:
            if whole:
                return whole.pop()
            while (message := await incoming())["type"] != "http.disconnect":
                pass  # discard the rest of a body that was too long, so that the answer is not lost
            return message

        async def send_positioned(message: Message) -> None:
            if message["type"] == "http.response.start" and not _has_position(message["headers"]):
                position = await self._position(scope, message["status"])
                message["headers"] = [*message["headers"], *position_headers(position)]
            await send(message)

        await self._inner(scope, receive_read, send_positioned)

    async def _answer(self, route: Route, call: Call, incoming: Incoming, send: Send) -> None:
        traced_call.note_route(route.path)
        try:
            answer = await self.answered(route, call, route.handler(call))
        except Disconnected:
            return
        if call.scope["method"] == "GET" and route.depends_on_caller:
            answer = answer._replace(headers=[*answer.headers, _VARY])
        if isinstance(answer, Response):
            await send_response(send, answer, incoming)
            return
        try:
            await send_stream(send, answer, incoming, incoming.peer)
        except Exception:
            log.exception("stream_failed", route=route.path)

    async def answered(
        self, route: Route, call: Call, work: Awaitable[Response | StreamingResponse]
    ) -> Response | StreamingResponse:
        """Return the answer of a route whose handler does the work: an error as its problem
        document, counted, and with the position. Raises Disconnected.
        """
        answer = await _run(route, work)
        metrics.http_requests(route.path, answer.status).inc()
        if answer.position is None and route.authenticates:
            position = await reply_position(
                self.services, call.scope["headers"], answer.status, call.subject
            )
            answer = answer._replace(position=position)
        return answer


def _has_position(headers: Headers) -> bool:
    return any(name.lower() == b"eventhub-sequence" for name, _ in headers)


async def _body_for_django(headers: Headers, incoming: Incoming) -> bytes:
    """Return the body. A request without a credential may send what a login needs; a longer body is
    replaced with blanks that are too long for a login as well, so that Django refuses it and counts
    it where it counts logins.

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


async def _run(
    route: Route, work: Awaitable[Response | StreamingResponse]
) -> Response | StreamingResponse:
    try:
        return await work
    except EventHubError as error:
        if error.status == 500:
            log.error("route_failed", route=route.path, code=error.code, detail=error.message)
        return problem_response(error)
    except Disconnected:
        raise
    except Exception:
        log.exception("route_failed", route=route.path)
        return problem_response(EventHubError())
