"""The AsyncAPI document of websockets and server-sent events. Django module.

Its messages are the types by which the hub parses what clients send, and those of what it sends.
"""

import functools
import inspect
import re
from typing import Any, get_args

import msgspec
import orjson
from django.http import HttpRequest, HttpResponse

from delivery.listening import messages as received
from delivery.listening import sent_messages as sent
from delivery.listening.frames import SUBPROTOCOLS
from delivery.listening.route_table import LISTEN_ROUTES
from delivery.sessions.route_table import SESSION_ROUTES
from eventhub.api.problems import read_only
from eventhub.base import limits
from eventhub.base.version import VERSION
from eventhub.event.inbound import EventIn
from eventhub.event.json_types import schema_of
from eventhub.http.routes import Route

RECEIVED: tuple[type[msgspec.Struct], ...] = get_args(received.Incoming)
_REFERENCE = "#/components/schemas/"
_TOKEN = {
    "type": "string",
    "description": "A connection token, for clients that cannot send headers.",
}
_CREDENTIALS = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, `ehk_…`, or a connection token.",
    },
    "accessToken": {
        "type": "httpApiKey",
        "name": "access_token",
        "in": "query",
        "description": _TOKEN["description"],
    },
}
# the answers that a message has, apart from errors
_REPLIES: dict[type, tuple[type, ...]] = {
    received.ListenMessage: (
        sent.SentListeningJson,
        sent.SentGapJson,
        sent.SentSegmentMismatchJson,
    ),
    received.Stop: (sent.SentStoppedJson,),
    received.Ack: (sent.SentAckedJson,),
    received.Connect: (sent.SentConnectedJson,),
    received.Disconnect: (sent.SentDisconnectedJson,),
    received.EmitMessage: (sent.SentEmittedJson,),
    received.ResendMessage: (sent.SentResentJson,),
    received.InterestMessage: (sent.SentInterestJson,),
    received.Confirm: (sent.SentConfirmedJson,),
    received.Forget: (sent.SentForgottenJson,),
    received.Ping: (sent.SentPongJson,),
}


@functools.cache
def document() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document; it is the same for every caller."""
    every = (*RECEIVED, *sent.SOCKET_MESSAGES, *sent.STREAM_EVENTS)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "EventHub",
            "version": VERSION,
            "description": (
                "The messages of websockets and server-sent events. Every message is a JSON object"
                " whose `op` names its type. The requests of HTTP are in the OpenAPI document."
            ),
            "license": {
                "name": "Apache-2.0",
                "url": "https://www.apache.org/licenses/LICENSE-2.0",
            },
        },
        "defaultContentType": "application/json",
        "servers": {
            "websocket": _server("wss", "A hub, over websockets; `ws` without TLS."),
            "http": _server("https", "A hub, over HTTP; `http` without TLS."),
        },
        "channels": {
            "socket": _socket_channel(),
            "streamEvents": _event_channel(
                LISTEN_ROUTES[0], "A stream as server-sent events", sent.STREAM_EVENTS
            ),
            "sessionEvents": _event_channel(
                SESSION_ROUTES[1], "A session as server-sent events", sent.SESSION_MESSAGES
            ),
        },
        "operations": _operations(),
        "components": {
            "schemas": _schemas(every),
            "messages": {_name(kind): _message(kind) for kind in dict.fromkeys(every)},
            "securitySchemes": _CREDENTIALS,
        },
    }


@functools.cache
def document_text() -> str:
    """Return the document as it is served and versioned: indented."""
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2).decode() + "\n"


@read_only
def asyncapi_json(request: HttpRequest) -> HttpResponse:
    """Serve `/docs/asyncapi.json`."""
    return HttpResponse(document_text(), content_type="application/json")


def _server(protocol: str, text: str) -> dict[str, Any]:
    return {
        "host": "{host}",
        "protocol": protocol,
        "description": text,
        "variables": {"host": {"default": "127.0.0.1:8000"}},
        "security": [{"$ref": f"#/components/securitySchemes/{name}"} for name in _CREDENTIALS],
    }


def _socket_channel() -> dict[str, Any]:
    return {
        "address": "/v1/ws",
        "title": "Websocket",
        "description": (
            "Listeners, sessions, emits and interests of one connection. The subprotocol is"
            f" `{'` or `'.join(SUBPROTOCOLS)}`: in the second, frames of the hub are binary"
            " ServerFrame messages. A message to the hub has at most"
            f" {limits.MESSAGE_BYTES_MAX} bytes."
        ),
        "servers": [{"$ref": "#/servers/websocket"}],
        "messages": _messages((*RECEIVED, *sent.SOCKET_MESSAGES)),
        "bindings": {
            "ws": {
                "method": "GET",
                "query": {"type": "object", "properties": {"access_token": _TOKEN}},
                "bindingVersion": "0.1.0",
            }
        },
    }


def _event_channel(route: Route, title: str, kinds: tuple[type, ...]) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", route.path)
    return {
        "address": route.path,
        "title": title,
        "description": (
            "`Accept: text/event-stream`. The name of an event is its `op`, `problem` for `error`;"
            " the data is the message; the id is the cursor."
        ),
        "servers": [{"$ref": "#/servers/http"}],
        "parameters": {name: {"description": f"The name of the {name}."} for name in names},
        "messages": _messages(kinds),
    }


def _operations() -> dict[str, Any]:
    """Return one operation for each message to the hub, and one for what each channel sends."""
    found = {
        f"receive{kind.__name__.removesuffix('Message')}": _received(kind) for kind in RECEIVED
    }
    for channel, route, kinds in (
        ("socket", None, sent.SOCKET_MESSAGES),
        ("streamEvents", LISTEN_ROUTES[0], sent.STREAM_EVENTS),
        ("sessionEvents", SESSION_ROUTES[1], sent.SESSION_MESSAGES),
    ):
        operation: dict[str, Any] = {
            "action": "send",
            "channel": {"$ref": f"#/channels/{channel}"},
            "messages": _references(channel, kinds),
        }
        if route is not None:
            query = {
                one["name"]: {**one["schema"], "description": one["description"]}
                for one in route.parameters
                if one["in"] == "query"
            }
            operation["bindings"] = {
                "http": {
                    "method": "GET",
                    "query": {"type": "object", "properties": query},
                    "bindingVersion": "0.3.0",
                }
            }
        found[f"send{channel[0].upper()}{channel[1:]}"] = operation
    return found


def _received(kind: type[msgspec.Struct]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "action": "receive",
        "channel": {"$ref": "#/channels/socket"},
        "summary": _one_line(inspect.getdoc(kind) or ""),
        "messages": _references("socket", (kind,)),
    }
    if kind in _REPLIES:
        operation["reply"] = {
            "channel": {"$ref": "#/channels/socket"},
            "messages": _references("socket", (*_REPLIES[kind], sent.SentErrorJson)),
        }
    return operation


def _references(channel: str, kinds: tuple[type, ...]) -> list[dict[str, str]]:
    return [{"$ref": f"#/channels/{channel}/messages/{_name(kind)}"} for kind in kinds]


def _messages(kinds: tuple[type, ...]) -> dict[str, Any]:
    names = map(_name, dict.fromkeys(kinds))
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _message(kind: type) -> dict[str, Any]:
    return {
        "name": op_of(kind),
        "summary": _one_line(inspect.getdoc(kind) or ""),
        "payload": {"$ref": f"{_REFERENCE}{_name(kind)}"},
    }


def _name(kind: type) -> str:
    return kind.__name__.removesuffix("Json")


def op_of(kind: type) -> str:
    """Return the `op` of a message's type."""
    if issubclass(kind, msgspec.Struct):
        return str(kind.__struct_config__.tag)
    [op] = get_args(kind.__annotations__["op"])
    return str(op)


def _schemas(kinds: tuple[type, ...]) -> dict[str, Any]:
    """Return the schemas of messages and of what they refer to, without fields that the hub takes
    only to refuse them, and without `null` as the default of fields that are not given.
    """
    found: dict[str, Any] = {}
    for kind in (*kinds, EventIn):
        found |= schema_of(kind)[1]
    for schema in found.values():
        if "description" in schema:
            schema["description"] = _one_line(schema["description"])
        properties = schema.get("properties", {})
        for name, one in list(properties.items()):
            if one.get("not") == {}:
                del properties[name]
            elif one.get("default", "") is None:
                del one["default"]
    return dict(sorted(found.items()))


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
