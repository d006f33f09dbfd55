"""The errors of MCP: JSON-RPC's own, those of the core protocol, and those of the Events extension
(SEP-3415). Plain module.

An error of the hub becomes one of them, with its problem document as `data`.
"""

from collections.abc import Mapping
from typing import Any

from eventhub.base import errors
from eventhub.base.errors import EventHubError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
NOT_FOUND = -32023
FORBIDDEN = -32024
RESOURCE_EXHAUSTED = -32025
UNSUPPORTED = -32026
CALLBACK_ENDPOINT = -32027

_STATUS = {  # the HTTP status of an answer, where it is not 200
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS), 400),
    **dict.fromkeys((HEADER_MISMATCH, UNSUPPORTED_VERSION), 400),
    METHOD_NOT_FOUND: 404,
}
_CODES = {
    401: FORBIDDEN,
    403: FORBIDDEN,
    404: NOT_FOUND,
    409: UNSUPPORTED,
    429: RESOURCE_EXHAUSTED,
}  # another one below 500: INVALID_PARAMS


class RpcError(Exception):
    """An error as JSON-RPC transmits it. `status`: of HTTP, for clients that read it."""

    def __init__(
        self, code: int, message: str, data: dict[str, Any] | None = None, status: int = 0
    ) -> None:
        self.code = code
        self.message = message
        self.data = data or {}
        self.status = status or _STATUS.get(code, 200)
        super().__init__(message)

    def json(self) -> dict[str, Any]:
        """Return the error object."""
        data = {"data": self.data} if self.data else {}
        return {"code": self.code, "message": self.message, **data}


def rpc_error(error: EventHubError) -> RpcError:
    """Return an error of the hub as one of MCP. `data` has its code, position and details."""
    found = rpc_problem(error.problem(), {})
    if error.retry_after_s is not None:
        found.data["retryAfterMs"] = error.retry_after_s * 1_000
    return found


def rpc_problem(problem: dict[str, Any], fields: Mapping[str, str]) -> RpcError:
    """Return a problem document as an error of MCP. `fields`: the names that fields of the request
    have in the parameters.
    """
    hidden = ("type", "title", "detail", "status")
    data = {name: value for name, value in problem.items() if name not in hidden}
    field = data.get("position", {}).get("field", "").partition(".")[0]
    if field in fields:
        data["position"] = {"field": fields[field]}
    status: int = 429 if data["code"] == errors.LimitReached.code else problem["status"]
    code = _CODES.get(status, INVALID_PARAMS if status < 500 else INTERNAL_ERROR)
    return RpcError(code, problem["detail"], data, status if status in (429, 503) else 0)


def invalid_params(message: str, field: str) -> RpcError:
    """Return the error of a parameter with a wrong value."""
    data = {"code": errors.InvalidField.code, "position": {"field": field}}
    return RpcError(INVALID_PARAMS, message, data)


def not_found(kind: str, message: str) -> RpcError:
    """Return the error of an event type or a subscription that does not exist."""
    return RpcError(NOT_FOUND, message, {"kind": kind})
