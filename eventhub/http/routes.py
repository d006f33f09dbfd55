"""The table of the hot routes: path, request body, responses and errors of each. It drives dispatch
and OpenAPI. Plain module.
"""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from eventhub.access import roles
from eventhub.access.quotas import RateLimited, ZoneStorageFull
from eventhub.access.sessions import (
    HEADER,
    SessionSuspended,
    TypeNotSupplied,
    UnknownSession,
    WrongSessionKind,
)
from eventhub.base import errors, limits
from eventhub.base.errors import DatabaseBusy
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.errors import ImmutableProperty, InvalidXml, MalformedXml
from eventhub.event.inbound import JSON, NDJSON, EventIn
from eventhub.event.json_types import schema_of
from eventhub.eventlog.errors import StorageFull, TransientUnavailable
from eventhub.http.call import Call, Handler
from eventhub.http.emit_route import emit_route
from eventhub.http.emitted import EmittedJson
from eventhub.http.health import ReadinessJson
from eventhub.http.messages import Response
from eventhub.http.operations import health_route, metrics_route, ready_route
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType


class ResponseSpec(NamedTuple):
    """The response of one status. `content`: a type or JSON Schema by media type."""

    description: str
    content: Mapping[str, Any] = {}


class Route(NamedTuple):
    """One method of one path. `handler` returns a response or raises one of `raises`."""

    method: str
    path: str
    summary: str
    description: str
    responses: Mapping[str, ResponseSpec]  # by status, without errors
    handler: Handler
    raises: tuple[type[errors.EventHubError], ...] = ()
    body: Mapping[str, Any] | None = None  # a type or JSON Schema by media type
    # OpenAPI parameters, without those of the path. A query parameter that is not here is refused.
    parameters: tuple[dict[str, Any], ...] = ()
    only_reads: bool = False  # a POST that changes nothing

    def pattern(self) -> re.Pattern[str]:
        """Compile the path to a pattern in which a parameter is one path segment."""
        return re.compile(re.sub(r"\{\w+\}", "([^/]+)", self.path))

    def operation(self) -> dict[str, Any]:
        """Return the route as an OpenAPI operation object."""
        names = re.findall(r"\{(\w+)\}", self.path)
        operation: dict[str, Any] = {
            "operationId": self.method.lower() + "_" + re.sub(r"\W+", "_", self.path).strip("_"),
            "summary": self.summary,
            "description": self.description,
            "tags": ["hot routes"],
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
            + list(self.parameters),
            "responses": _merged(
                {status: _response(spec) for status, spec in self.responses.items()},
                _problem_responses((*_ALWAYS, *self.raises, *self._refusals)),
            ),
        }
        if self.body is not None:
            operation["requestBody"] = {"required": True, "content": _content(self.body)}
        operation["security"] = [{"bearer": []}] if self.authenticates else []
        return operation

    @property
    def query_names(self) -> frozenset[str]:
        """The names of its query parameters."""
        return frozenset(one["name"] for one in self.parameters if one["in"] == "query")

    @property
    def role(self) -> str:
        """The role that an operator needs."""
        return roles.needed(self.method, roles.VIEWER if self.only_reads else "")

    @property
    def _refusals(self) -> tuple[type[errors.EventHubError], ...]:
        """The refusals of callers who are known, of the sessions that they name, and of the query
        parameters.
        """
        sessions = (UnknownSession, WrongSessionKind, errors.InvalidName, errors.FieldTooLong)
        query = (errors.UnknownField, errors.InvalidField, errors.InvalidUtf8)
        return (
            *((errors.AddressNotAllowed,) if self.depends_on_caller else ()),
            *((*sessions, *query) if self.authenticates else ()),
        )

    @property
    def authenticates(self) -> bool:
        """Whether the route refuses callers without a credential."""
        return errors.Unauthenticated in self.raises

    @property
    def depends_on_caller(self) -> bool:
        """Whether responses differ by the caller: also without a credential, as of `/readyz`."""
        return self.authenticates or errors.InvalidCredentials in self.raises

    def schemas(self) -> dict[str, Any]:
        """Return the JSON Schemas that the operation refers to, by name."""
        contents = [self.body or {}, *(spec.content for spec in self.responses.values())]
        found: dict[str, Any] = {}
        for kind in chain.from_iterable(content.values() for content in contents):
            found |= schema_of(kind)[1]
        return found


def _merged(own: dict[str, Any], problems: dict[str, Any]) -> dict[str, Any]:
    """Return all responses; one that is a problem document too has the contents of both."""
    for status in own.keys() & problems.keys():
        problems[status]["content"] |= own[status]["content"]
    return own | problems


def query_parameter(name: str, text: str, **schema: Any) -> dict[str, Any]:
    """Return an OpenAPI query parameter, a string unless `schema` says otherwise."""
    shape = {"type": "string", **schema}
    return {"name": name, "in": "query", "required": False, "description": text, "schema": shape}


SESSION = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A session of the client, through which the request acts.",
    "schema": {"type": "string"},
}


async def unbound(call: Call) -> Response:
    """Raise NotFound: stands for the handler of a route until a process binds its own."""
    raise errors.NotFound


_PROBLEM = {"$ref": "#/components/schemas/Problem"}
# Errors of every request, before its route is known.
_ALWAYS = (errors.BadRequest, errors.HeadersTooLarge, errors.RequestTimeout, errors.NotFound)


def _response(spec: ResponseSpec) -> dict[str, Any]:
    response: dict[str, Any] = {"description": spec.description}
    return {**response, "content": _content(spec.content)} if spec.content else response


def _content(content: Mapping[str, Any]) -> dict[str, Any]:
    return {media: {"schema": schema_of(kind)[0]} for media, kind in content.items()}


def _problem_responses(refuses: tuple[type[errors.EventHubError], ...]) -> dict[str, Any]:
    by_status: dict[str, list[str]] = {}
    for error in dict.fromkeys(refuses):
        by_status.setdefault(str(error.status), []).append(error.code)
    return {
        status: {
            "description": " or ".join(f"`{code}`" for code in codes),
            "content": {"application/problem+json": {"schema": _PROBLEM}},
        }
        for status, codes in sorted(by_status.items())
    }


async def _ready(call: Call) -> Response:
    return await ready_route(call.log, call.authorizer, call.health, call.scope["headers"])


EMIT_REFUSES: tuple[type[errors.EventHubError], ...] = (
    *(errors.MalformedJson, errors.InvalidUtf8, errors.TooDeep, errors.NumberOutOfRange),
    *(errors.InvalidField, errors.UnknownField, errors.MissingField, errors.FieldTooLong),
    *(errors.EmptyBatch, errors.UnknownChannel, errors.InvalidMask, errors.Unauthenticated),
    *(errors.InvalidCredentials, errors.TokenExpired, errors.Forbidden, errors.UnknownStream),
    *(errors.RequestTimeout, errors.ProducerWindow, errors.BodyTooLarge, errors.BatchTooLarge),
    *(errors.EventTooLarge, errors.UnsupportedMediaType, MalformedXml, InvalidXml, TypeViolation),
    *(TypeTooCostly, UndeclaredType, ImmutableProperty),
    *(errors.LimitReached, errors.DatabaseUnavailable, DatabaseBusy),
    *(
        errors.OutcomeUnknown,
        errors.Overloaded,
        errors.TooManyRequests,
        RateLimited,
        ZoneStorageFull,
    ),
    *(TransientUnavailable, StorageFull),
    *(UnknownSession, WrongSessionKind, SessionSuspended, TypeNotSupplied),
)

_CLOUD_EVENT = {"type": "object", "description": "CloudEvents 1.0, JSON format."}
_STATUS = {"type": "object", "properties": {"status": {"type": "string"}}}
_TEXT = {"type": "string"}

HTTP_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/streams/{stream}/events",
        summary="Emit events",
        description=(
            "Stores one event, an array, or NDJSON: all events or none. Answers after the commit,"
            f" with their sequence numbers. At most {limits.BATCH_EVENTS_MAX} events and"
            f" {limits.BODY_BYTES_MAX} bytes. An event whose `id` has `incarnation` and `sequence`"
            " can be repeated safely: it is stored once, and a repeat is listed in `duplicates`."
            " The same holds for an event whose `id` is a text, and, within a day, for every event"
            " of a request with an `Idempotency-Key`. With headers `ce-*`, the body is the data of"
            " a CloudEvent."
        ),
        body={
            JSON: EventIn | list[EventIn],
            NDJSON: {"type": "string", "description": "One EventIn per line."},
            cloudevents.STRUCTURED: _CLOUD_EVENT,
            cloudevents.BATCH: {"type": "array", "items": _CLOUD_EVENT},
            oif.CONTENT_TYPE: {"type": "string", "description": "`name: value; ...`"},
            fox_xml.CONTENT_TYPES[0]: _TEXT,
        },
        responses={"200": ResponseSpec("Stored and durable.", {JSON: EmittedJson})},
        parameters=(SESSION,),
        raises=EMIT_REFUSES,
        handler=emit_route,
    ),
    Route(
        method="GET",
        path="/healthz",
        summary="Is the process alive?",
        description="Touches no dependency.",
        responses={"200": ResponseSpec("Alive.", {JSON: _STATUS})},
        handler=health_route,
    ),
    Route(
        method="GET",
        path="/readyz",
        summary="Can requests be served?",
        description=(
            "503 while the database is unavailable or `system` is not followed; else 200, also when"
            " the hub is `degraded`: emits and listeners work, but some component does not. Lists"
            " each component; with a key or token, also its reason and since when."
        ),
        responses={
            "200": ResponseSpec("Ready, or degraded.", {JSON: ReadinessJson}),
            "503": ResponseSpec("Not ready.", {JSON: ReadinessJson}),
        },
        raises=(errors.InvalidCredentials, errors.TokenExpired),
        handler=_ready,
    ),
    Route(
        method="GET",
        path="/metrics",
        summary="Prometheus metrics",
        description="Covers all web processes of the hub when `manage.py up` runs them.",
        responses={"200": ResponseSpec("Prometheus text format.", {"text/plain": _TEXT})},
        handler=metrics_route,
    ),
)
