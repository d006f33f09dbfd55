"""The tools of the MCP server, for operators' agents: requests of the API by other names. Plain
module.

A tool that changes something exists only for callers that may manage something; what the request
itself needs is checked where the API checks it.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from delivery.mcp.errors import invalid_params
from delivery.mcp.inner_requests import App, InnerRequest, send_inner
from eventhub.access import roles
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import EventHubError, MissingField
from eventhub.http.messages import Scope
from registrations.filters.languages import LANGUAGES

_PARAMETER = re.compile(r"\{(\w+)\}")
_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 1}
_STREAM = {"type": "string", "description": "The name of a stream."}
_SEQUENCE = {"type": "integer", "minimum": 1, "description": "The event's position in the stream."}
_FILTER = {
    "domain": {"type": "string", "description": "Of the pairs language."},
    "type": {"type": "string", "description": "Of the pairs language."},
    "attributes": {"type": "object", "description": "Of the pairs language: equal values."},
    "language": {"type": "string", "enum": [*LANGUAGES]},
    "filter": {
        "type": ["string", "object"],
        "description": "A filter in `language`, such as (and (= @type 'order.placed) (> total 9)).",
    },
}
_PAGE = {
    "limit": {"type": "integer", "minimum": 1, "description": "Items of the page."},
    "after": {"type": "string", "description": "`next` of the page before."},
}


class Tool(NamedTuple):
    """A tool: the request that it makes, and the schemas of its arguments by name. `fixed`: query
    parameters that it always sends.
    """

    name: str
    title: str
    description: str
    method: str
    path: str
    arguments: Mapping[str, Any]
    required: tuple[str, ...] = ()
    fixed: Mapping[str, str] = {}
    changes: bool = False

    def json(self) -> dict[str, Any]:
        """Return the tool as `tools/list` shows it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": dict(self.arguments),
                "required": list(self.required),
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": not self.changes, "destructiveHint": False},
        }

    def request(self, arguments: Mapping[str, Any]) -> InnerRequest:
        """Return the request for some arguments. Raises MissingField."""
        given = dict(arguments)

        def value(found: re.Match[str]) -> str:
            if given.get(found[1]) in (None, ""):
                raise MissingField(f"The argument `{found[1]}` is missing.", field=found[1])
            return quote(_text(given.pop(found[1])), safe="")

        path = _PARAMETER.sub(value, self.path)
        if self.method == "POST":
            return InnerRequest("POST", path, b"", given)
        query = {name: _text(one) for name, one in given.items() if one is not None}
        return InnerRequest("GET", path, urlencode({**query, **self.fixed}).encode())


TOOLS = (
    Tool(
        "list_streams",
        "Streams",
        "List the streams of the zone that the key may see, with their positions and policies.",
        "GET",
        "/v1/streams",
        _PAGE,
    ),
    Tool(
        "recent_events",
        "Recent events",
        "Read the newest events of a stream, the newest first, or those up to the cursor `from`"
        " (<segment>:<sequence>) or time; a filter selects among them.",
        "GET",
        "/v1/streams/{stream}/events",
        {"stream": _STREAM, "limit": _PAGE["limit"], "from": _TEXT, **_FILTER},
        ("stream",),
        {"order": "backward"},
    ),
    Tool(
        "explain_filter",
        "Explain a filter",
        "Explain why a filter matches a stored event (`stream` and `sequence`) or a draft of an"
        " event (`event`), or which test fails.",
        "POST",
        "/v1/filters/explain",
        {"stream": _STREAM, "sequence": _SEQUENCE, "event": {"type": "object"}, **_FILTER},
    ),
    Tool(
        "event_matches",
        "Who gets an event",
        "List the registrations that a stored event matched, and the nearest misses with the test"
        " that failed.",
        "GET",
        "/v1/streams/{stream}/events/{sequence}/matches",
        {"stream": _STREAM, "sequence": _SEQUENCE, "after": _PAGE["after"]},
        ("stream", "sequence"),
    ),
    Tool(
        "dry_run_filter",
        "Dry run of a filter",
        "Run a draft of a filter over stored events of a stream: the number of matches over time,"
        " and samples.",
        "POST",
        "/v1/filters/dry-run",
        {
            "stream": _STREAM,
            "last": {"type": "integer", "minimum": 1, "description": "The latest events."},
            "from": {"type": "string", "description": "`oldest`, a cursor, or a time."},
            "to": {"type": "string", "description": "A cursor or a time."},
            "samples": {"type": "integer", "minimum": 0},
            **_FILTER,
        },
        ("stream",),
    ),
    Tool(
        "dead_letters",
        "Dead letters",
        "List the deliveries that were dead-lettered, in groups by endpoint and cause.",
        "GET",
        "/v1/dead-letters",
        {"endpoint": _WHOLE, "stream": _STREAM, "client": _TEXT, **_PAGE},
    ),
    Tool(
        "deliveries",
        "Deliveries",
        "Find deliveries of callbacks by state, endpoint, stream or event.",
        "GET",
        "/v1/deliveries",
        {
            "state": {"type": "string", "description": "Such as pending or dead_lettered."},
            "endpoint": _WHOLE,
            "stream": _STREAM,
            "sequence": _SEQUENCE,
            **_PAGE,
        },
    ),
    Tool(
        "retry_delivery",
        "Send a delivery again",
        "Send one delivery again, such as a sample of a group of dead letters. Its receiver gets"
        " the event.",
        "POST",
        "/v1/deliveries/{delivery}/resend",
        {"delivery": {"type": "string", "description": "The delivery's id, such as 3.12.41.7."}},
        ("delivery",),
        changes=True,
    ),
)


def tools_of(principal: Principal) -> list[Tool]:
    """Return the tools that exist for a caller."""
    if principal.is_operator:
        changes = roles.may(principal.role, roles.OPERATOR)
    else:
        grants = principal.grants if principal.narrowed is None else principal.narrowed
        changes = any(grant.action == "manage" for grant in grants)
    return [tool for tool in TOOLS if changes or not tool.changes]


async def call_tool(
    app: App, scope: Scope, principal: Principal, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the result of a tool: the answer of the API, or its refusal. Raises RpcError."""
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise invalid_params("`arguments` must be an object.", "arguments")
    named = {tool.name: tool for tool in tools_of(principal)}
    name = params.get("name")
    tool = named.get(name) if isinstance(name, str) else None
    if tool is None:
        raise invalid_params("The caller has no such tool; tools/list has all.", "name")
    try:
        answer = await send_inner(app, scope, tool.request(arguments))
    except EventHubError as error:
        return _result(orjson.dumps(error.problem()), error.status)
    return _result(answer.body, answer.status)


def _result(body: bytes, status: int) -> dict[str, Any]:
    text = body.decode()
    found: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": status >= 400}
    if body.startswith(b"{"):
        found["structuredContent"] = orjson.Fragment(body)
    return found


def list_tools(principal: Principal) -> dict[str, Any]:
    """Return the result of `tools/list`."""
    tools = [tool.json() for tool in tools_of(principal)]
    return {"tools": tools, "ttlMs": limits.MCP_TOOLS_TTL_MS, "cacheScope": "private"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
