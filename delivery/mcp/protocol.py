"""The messages of MCP over Streamable HTTP: one JSON-RPC request or notification in the body of a
POST. Plain module.

Two eras are served, both without sessions. A request of 2026-07-28 states its version in `_meta`
and in headers, which must agree. An older client begins with `initialize`; its later requests are
answered without looking at that.
"""

import base64
import binascii
from typing import Any, NamedTuple

import orjson

from delivery.mcp.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcError,
)
from eventhub.base import limits
from eventhub.base.errors import EventHubError, InvalidUtf8, MalformedJson
from eventhub.base.strict_json import parse_json
from eventhub.base.version import VERSION
from eventhub.http.messages import Headers

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18")  # the newest first
VERSIONS = (MODERN, *LEGACY)
EVENTS = "io.modelcontextprotocol/events"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
SERVER = {"name": "eventhub", "title": "EventHub", "version": VERSION}
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_VERSION, _METHOD, _NAME = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
_NAMED = ("tools/call",)  # the methods whose `name` is a header too
_ENCODED_BEGIN, _ENCODED_END = "=?base64?", "?="

RequestId = str | int


class RpcRequest(NamedTuple):
    """A request. `modern`: of 2026-07-28, else of an older version."""

    id: RequestId
    method: str
    params: dict[str, Any]
    modern: bool = True


class RefusedMessage(Exception):
    """A message that is answered with an error before its method is looked at."""

    def __init__(self, error: RpcError, id: RequestId | None = None) -> None:
        self.error = error
        self.id = id
        super().__init__(error.message)


def read_message(body: bytes, headers: Headers) -> RpcRequest | None:
    """Return the request in a body; None for a notification. Raises RefusedMessage."""
    message = _parse(body)
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise RefusedMessage(_invalid('`jsonrpc` must be "2.0", and `method` a text.'))
    if "id" not in message:
        return None
    id = message["id"]
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise RefusedMessage(_invalid("`id` must be a text or an integer."))
    if isinstance(id, str) and len(id) > limits.MCP_ID_CHARS_MAX:
        raise RefusedMessage(_invalid(f"`id` has at most {limits.MCP_ID_CHARS_MAX} characters."))
    params = message.get("params", {})
    try:
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "`params` must be an object.")
        request = RpcRequest(id, message["method"], params)
        return request._replace(modern=_is_modern(request, headers))
    except RpcError as error:
        raise RefusedMessage(error, id) from None


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message = parse_json(body)
    except EventHubError as error:
        of_text = isinstance(error, MalformedJson | InvalidUtf8)
        data = {"code": error.code, "position": error.position, **error.details}
        code = PARSE_ERROR if of_text else INVALID_REQUEST
        raise RefusedMessage(RpcError(code, error.message, data)) from None
    if not isinstance(message, dict):
        raise RefusedMessage(_invalid("Send one request or notification, and no batch."))
    return message


def _invalid(message: str) -> RpcError:
    return RpcError(INVALID_REQUEST, message)


def _is_modern(request: RpcRequest, headers: Headers) -> bool:
    """Return whether a request is of the modern era, after checking what that demands. Raises
    RpcError.
    """
    given = [value.decode("latin-1") for name, value in headers if name == _VERSION]
    meta = request.params.get("_meta")
    states_version = isinstance(meta, dict) and _META_VERSION in meta
    if not states_version and (request.method == "initialize" or not given or given[0] in LEGACY):
        return False
    if not isinstance(meta, dict) or not states_version or _META_CAPABILITIES not in meta:
        message = f"`params._meta` needs `{_META_VERSION}` and `{_META_CAPABILITIES}`."
        raise RpcError(INVALID_PARAMS, message)
    version = meta[_META_VERSION]
    _require_header(headers, _VERSION, version)
    _require_header(headers, _METHOD, request.method)
    if request.method in _NAMED:
        _require_header(headers, _NAME, request.params.get("name"))
    if version != MODERN:
        data = {"supported": list(VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return True


def _require_header(headers: Headers, name: bytes, value: Any) -> None:
    """Raise HeaderMismatch unless the header is given once and has the value of the body."""
    given = [text.decode("latin-1") for known, text in headers if known == name]
    if len(given) != 1 or _decoded(given[0]) != value:
        header = name.decode()
        raise RpcError(
            HEADER_MISMATCH, f"The header {header} must be given once, and be equal to the body's."
        )


def _decoded(text: str) -> str | None:
    """Return the value of a header, which may be in base64; None if that is malformed."""
    if not (text.startswith(_ENCODED_BEGIN) and text.endswith(_ENCODED_END)):
        return text
    encoded = text[len(_ENCODED_BEGIN) : -len(_ENCODED_END)]
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeError):
        return None


def result_body(id: RequestId, result: dict[str, Any]) -> bytes:
    """Return the answer with a result."""
    meta = {"io.modelcontextprotocol/serverInfo": SERVER, **result.get("_meta", {})}
    whole = {"resultType": "complete", **result, "_meta": meta}
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "result": whole})


def error_body(id: RequestId | None, error: RpcError) -> bytes:
    """Return the answer with an error. `id`: None if it could not be read."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "error": error.json()})


def notification(method: str, params: dict[str, Any]) -> bytes:
    """Return a notification."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})
