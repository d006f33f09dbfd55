"""The specification of the MCP route; it drives dispatch and OpenAPI. Plain module."""

from delivery.listening.served import ServedListeners
from delivery.mcp.inner_requests import App
from delivery.mcp.route import McpHandler
from eventhub.base import errors
from eventhub.http.origins import Origins
from eventhub.http.routes import SESSION, ResponseSpec, Route, unbound
from registrations.endpoints.secrets import Keyring

_MESSAGE = {"type": "object", "description": "A message of JSON-RPC 2.0."}
_JSON = "application/json"
_ERROR = ResponseSpec("An error of JSON-RPC.", {_JSON: _MESSAGE})

MCP_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/mcp",
        summary="Talk to the hub as an MCP server",
        description=(
            "One JSON-RPC request of the Model Context Protocol, 2026-07-28 or with `initialize`"
            " older, over Streamable HTTP: discovery, tools, and the methods of the extension"
            " `io.modelcontextprotocol/events`. Errors of a method are errors of JSON-RPC."
        ),
        body={_JSON: _MESSAGE},
        responses={
            "200": ResponseSpec(
                "The result, or the stream of a subscription.",
                {_JSON: _MESSAGE, "text/event-stream": {"type": "string"}},
            ),
            "202": ResponseSpec("A notification was received."),
            **{str(status): _ERROR for status in (400, 404, 429, 503)},
        },
        parameters=(SESSION,),
        raises=(
            errors.Unauthenticated,
            errors.InvalidCredentials,
            errors.TokenExpired,
            errors.OriginNotAllowed,
            errors.BodyTooLarge,
            errors.RequestTimeout,
            errors.UnsupportedMediaType,
            errors.DatabaseUnavailable,
        ),
        handler=unbound,
        only_reads=True,  # a tool that changes something is a request of its own
    ),
)


def mcp_routes(
    listeners: ServedListeners, origins: Origins, app: App, keyring: Keyring
) -> tuple[Route, ...]:
    """Return the route of the table with its handler. `app`: all routes."""
    [mcp] = MCP_ROUTES
    return (mcp._replace(handler=McpHandler(listeners, origins, app, keyring)),)
