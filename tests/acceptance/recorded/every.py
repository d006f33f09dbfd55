"""Calls that are made to every route of the OpenAPI document: by those who may not, with an unknown
query parameter, a foreign zone, a condition, a wrong method or a wrong body.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.acceptance import documented
from tests.acceptance.recorded.call import Call

PARAMETERS = {
    "client": "shop",
    "public_id": "<key>",
    "operator": "nobody",
    "channel": "disk",
    "stream": "orders",
    "name": "nowhere",
    "sequence": "1",
    "delivery": "<delivery>",
    "replay": "1",
    "registration": "<registration>",
    "timer": "1",
    "source": "<source>",
    "connector": "<connector>",
    "sample": "1",
    "pattern": "<pattern>",
    "pattern_group": "<patterngroup>",
    "handle": "tick",
    "endpoint": "<endpoint>",
    "group": "<group>",
    "session": "<session>",
    "session_group": "<sessiongroup>",
    "application": "till",
    "application_group": "tills",
    "secret": "<previous>",
    "key": "a",
    "domain": "shop",
    "type": "measured",
    "version": "1",
    "segment": "<segment>",
    "job": "audit",
    "run": "1",
    "path": "report.html",
}
WRITES = ("POST", "PUT", "PATCH", "DELETE")
_OPERATORS = (*("/v1/zones", "/v1/jobs", "/v1/members", "/v1/operators", "/v1/session/password"),)
# Open to callers without a credential: for the systems that operate the hub, and for providers.
OPEN = ("/healthz", "/readyz", "/metrics", "/v1/webhooks/{token}")


class Operation(documented.Operation):
    """One that is called."""

    @property
    def path(self) -> str:
        """The route with what the calls before have made."""
        path = self.route
        if "/state" in path:
            path = path.replace("{stream}", "kept")
        if path.endswith("/events"):
            path = path.replace("{session}", "nowhere")  # the answer has no end
        return re.sub(r"\{(\w+)\}", lambda found: PARAMETERS[found[1]], path)

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def caller(self) -> str:
        """The caller that may use the route."""
        return "operator" if self.route.startswith(_OPERATORS) else "admin"


@cache
def operations() -> tuple[Operation, ...]:
    """Return all operations of the API."""
    return tuple(Operation(*one) for one in documented.operations() if one.route not in OPEN)


def calls() -> Iterator[Call]:
    for operation in operations():
        yield Call("nobody", operation.line)
        if "{" in operation.route:
            for who in ("stranger", "powerless"):
                yield Call(who, operation.line, _body(operation))
        if operation.method == "GET":
            yield Call(operation.caller, f"HEAD {operation.path}")
        else:
            yield from _of_writes(operation)
    routes = sorted({operation.route for operation in operations()})
    for number, route in enumerate(routes):
        there = {operation.method for operation in operations() if operation.route == route}
        path, caller = Operation("GET", route).path, Operation("GET", route).caller
        yield Call(caller, f"{'OPTIONS' if number % 2 else 'TRACE'} {path}")
        yield Call(caller, f"{next(one for one in WRITES[::-1] if one not in there)} {path}")
        known = next(iter(sorted(there)))
        yield Call(caller, f"{known} {path}?colour=red")


def _of_writes(operation: Operation) -> Iterator[Call]:
    yield Call(operation.caller, operation.line, headers={"If-None-Match": "none"})
    if operation.method != "DELETE":
        yield Call(operation.caller, operation.line, b"[]")
        yield Call(operation.caller, operation.line, {"colour": "red"})


def _body(operation: Operation) -> Any:
    return None if operation.method in ("GET", "DELETE") else {}


OTHERS = [
    *(Call(who, "GET /v1/clients") for who in ("revoked", "expired", "token", "wrong", "garbage")),
    *(Call(who, "POST /v1/clients", {}) for who in ("revoked", "token")),
    Call("operator", "POST /v1/clients", {"name": "x"}, {"X-CSRFToken": "x" * 32}),
    Call("nobody", "GET /v1/clients", headers={"Authorization": "Basic YTpi"}),
    Call("admin", "GET /v1/clients?zone="),
    Call("admin", "GET /v1/clients?zone=a%20b"),
    Call("admin", "GET /v1/clients?zone=%ff"),
    Call("admin", "GET /v1/clients?limit=1&limit=2"),
    Call("admin", "GET /v1/clients", headers={"Accept": "text/html"}),
    Call("admin", "GET /v1/clients", headers={"If-None-Match": '"1"'}),
    Call("admin", "GET /v1/clients", headers={"Origin": "https://other.example"}),
    Call("admin", "GET /v1/clients/"),
    Call("admin", "GET /v1/nothing"),
    *(
        Call("admin", "POST /v1/clients", body)
        for body in (
            b'{"name": "\xff"}',
            b'{"name": "\\ud800"}',
            b'{"name": NaN}',
            b'{"name": 36893488147419103232}',
            b'{"name": "x", "name": "y"}',
            b'{"name": ' + b"[" * 1_000,
            b'"' + b"x" * 300_000 + b'"',
        )
    ),
    Call("operator", "GET /v1/jobs?zone=none"),
    Call("admin", "GET /v1/registrations?zone=<other>"),
    Call("admin", "POST /v1/clients", b"a", {"Content-Type": "text/plain"}),
    Call("admin", "POST /v1/clients", b"{}", {"Content-Encoding": "gzip"}),
    Call("admin", "POST /v1/clients", b"{}", {"Content-Type": "application/json; charset=latin-1"}),
]
