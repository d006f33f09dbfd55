"""POST /mcp: the hub as an MCP server over Streamable HTTP, stateless. Plain module."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from delivery.listening.served import EventsCaller, ServedListeners
from delivery.mcp.errors import METHOD_NOT_FOUND, RpcError, rpc_error
from delivery.mcp.events import EventMethods
from delivery.mcp.inner_requests import App, McpCaller
from delivery.mcp.protocol import (
    EVENTS,
    LEGACY,
    SERVER,
    VERSIONS,
    RefusedMessage,
    RequestId,
    RpcRequest,
    error_body,
    read_message,
    result_body,
)
from delivery.mcp.subscriptions import SubscriptionMethods
from delivery.mcp.tools import call_tool, list_tools
from eventhub.base import limits, metrics
from eventhub.base.errors import EventHubError, Unauthenticated, UnsupportedMediaType
from eventhub.http.call import Call
from eventhub.http.messages import (
    Headers,
    Response,
    StreamingResponse,
    read_body,
    read_head,
)
from eventhub.http.origins import Origins
from registrations.endpoints.secrets import Keyring

_JSON = "application/json"
_CAPABILITIES: dict[str, Any] = {
    "tools": {},
    "extensions": {EVENTS: {}},
    "events": {},  # where drafts before SEP-3415 declared the extension
}
_INSTRUCTIONS = (
    "EventHub stores events in streams. events/list has the event types; subscribe to one by"
    " events/poll, events/stream or events/subscribe with the stream in `arguments`, and resume"
    " from the cursor. The tools read streams, explain filters, and find deliveries that failed."
)
Result = dict[str, Any] | StreamingResponse


Method = Callable[[McpCaller, RpcRequest], Awaitable[Result]]


class McpHandler:
    """The route's handler in one process."""

    def __init__(
        self, listeners: ServedListeners, origins: Origins, app: App, keyring: Keyring
    ) -> None:
        """Initialize; `app` answers requests of the API."""
        self._origins = origins
        self._app = app
        self._events = EventMethods(listeners)
        log = listeners.services.log
        self._subscriptions = SubscriptionMethods(self._events, log, app, keyring)
        self._methods: Mapping[str, Method] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "events/list": self._list_events,
            "events/poll": self._poll,
            "events/stream": self._stream,
            "events/subscribe": self._subscribe,
            "events/unsubscribe": self._unsubscribe,
        }

    async def __call__(self, call: Call) -> Response | StreamingResponse:
        """Handle a message. Raises Unauthenticated, OriginNotAllowed, and the errors of reading a
        body; every other error is an answer of JSON-RPC.
        """
        headers = call.scope["headers"]
        self._origins.require(headers)
        head = read_head(headers)
        principal = await call.authenticate(head.credential)
        if head.content_type != _JSON:
            raise UnsupportedMediaType(f"Send the message as {_JSON}.")
        most = limits.MCP_BODY_BYTES_MAX
        body = await read_body(call.incoming, head.content_length, bytes_max=most)
        try:
            request = read_message(body, headers)
        except RefusedMessage as refused:
            return _refusal("", refused.error, refused.id)
        if request is None:
            return Response(202, b"", [])
        events = EventsCaller(head.credential, principal, call.incoming.peer)
        return await self._answer(McpCaller(events, call.scope), request)

    async def _answer(self, caller: McpCaller, request: RpcRequest) -> Response | StreamingResponse:
        method = self._methods.get(request.method)
        try:
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, "Method not found")
            result = await method(caller, request)
        except Unauthenticated:
            raise
        except (EventHubError, RpcError) as error:
            refused = rpc_error(error) if isinstance(error, EventHubError) else error
            if not request.modern:
                refused.status = 200  # older clients take another status for a broken connection
            known = request.method if method is not None else ""
            return _refusal(known, refused, request.id)
        metrics.MCP_REQUESTS.labels(request.method, "ok").inc()
        if isinstance(result, StreamingResponse):
            return result
        return Response(200, result_body(request.id, result), [])

    async def _initialize(self, caller: McpCaller, request: RpcRequest) -> Result:
        """Answer the handshake of older versions; there is no session."""
        asked = request.params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in LEGACY else LEGACY[0],
            "capabilities": _CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": _INSTRUCTIONS,
        }

    async def _ping(self, caller: McpCaller, request: RpcRequest) -> Result:
        return {}

    async def _discover(self, caller: McpCaller, request: RpcRequest) -> Result:
        return {
            "supportedVersions": list(VERSIONS),
            "capabilities": _CAPABILITIES,
            "instructions": _INSTRUCTIONS,
            "ttlMs": limits.MCP_DISCOVERY_TTL_MS,
            "cacheScope": "public",
        }

    async def _list_tools(self, caller: McpCaller, request: RpcRequest) -> Result:
        return list_tools(caller.events.principal)

    async def _call_tool(self, caller: McpCaller, request: RpcRequest) -> Result:
        principal = caller.events.principal
        return await call_tool(self._app, caller.scope, principal, request.params)

    async def _list_events(self, caller: McpCaller, request: RpcRequest) -> Result:
        return await self._events.list(caller.events.principal, request.params)

    async def _stream(self, caller: McpCaller, request: RpcRequest) -> Result:
        return await self._events.stream(caller.events, request)

    async def _subscribe(self, caller: McpCaller, request: RpcRequest) -> Result:
        return await self._subscriptions.subscribe(caller, request.params)

    async def _unsubscribe(self, caller: McpCaller, request: RpcRequest) -> Result:
        return await self._subscriptions.unsubscribe(caller, request.params)

    async def _poll(self, caller: McpCaller, request: RpcRequest) -> Result:
        return await self._events.poll(caller.events, request.params)


def _refusal(method: str, error: RpcError, id: RequestId | None) -> Response:
    """Return the answer with an error, and count it."""
    metrics.MCP_REQUESTS.labels(method or "unknown", str(error.code)).inc()
    headers: Headers = []
    wait_ms = error.data.get("retryAfterMs")
    if wait_ms is not None:
        headers.append((b"retry-after", b"%d" % (wait_ms // 1_000)))
    return Response(error.status, error_body(id, error), headers)
