"""The hot doors in one table: their paths, what they take and answer, their errors; it drives
dispatch and OpenAPI. Plain module.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from eventhub.access.authorizer import Gate
from eventhub.base import errors, limits
from eventhub.base.fair_queue import Admission
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.errors import InvalidXml, MalformedXml
from eventhub.event.inbound import JSON, NDJSON, EventIn
from eventhub.event.json_types import schema_of
from eventhub.eventlog.errors import StorageFull, TransientUnavailable
from eventhub.eventlog.log import Log
from eventhub.http.emit import Desk, EmittedJson, emit_door
from eventhub.http.health import Health, ReadinessJson
from eventhub.http.messages import Answer, Incoming, Scope, Stream, utf8_path
from eventhub.http.operations import health_door, metrics_door, ready_door
from eventhub.postgresql.errors import DatabaseBusy
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType
from eventhub.types.registry import Book


class Call(NamedTuple):
    """One request at a door."""

    log: Log
    gate: Gate
    book: Book
    health: Health
    emits: Admission
    scope: Scope
    incoming: Incoming
    parameters: tuple[str, ...]  # of the path, in order


Run = Callable[[Call], Awaitable[Answer | Stream]]


class Said(NamedTuple):
    """What is answered with one status. `content`: by media type a type, or a JSON Schema."""

    description: str
    content: Mapping[str, Any] = {}


class Door(NamedTuple):
    """One method of one path. `run` answers or raises one of `refuses`."""

    method: str
    path: str
    summary: str
    description: str
    answers: Mapping[str, Said]  # by status; those that are no errors
    run: Run
    refuses: tuple[type[errors.EventHubError], ...] = ()
    takes: Mapping[str, Any] | None = None  # the body: by media type a type, or a JSON Schema
    asks: tuple[dict[str, Any], ...] = ()  # OpenAPI parameters beside those of the path

    def pattern(self) -> re.Pattern[str]:
        """What the path matches; a parameter is one path segment."""
        return re.compile(re.sub(r"\{\w+\}", "([^/]+)", self.path))

    def operation(self) -> dict[str, Any]:
        """The door as an OpenAPI operation object."""
        names = re.findall(r"\{(\w+)\}", self.path)
        operation: dict[str, Any] = {
            "operationId": self.method.lower() + "_" + re.sub(r"\W+", "_", self.path).strip("_"),
            "summary": self.summary,
            "description": self.description,
            "tags": ["hot doors"],
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
            + list(self.asks),
            "responses": {
                **{status: _response(said) for status, said in self.answers.items()},
                **_problem_responses((*_ALWAYS, *self.refuses)),
            },
        }
        if self.takes is not None:
            operation["requestBody"] = {"required": True, "content": _content(self.takes)}
        known = errors.Unauthenticated in self.refuses
        operation["security"] = [{"bearer": []}] if known else []
        return operation

    def schemas(self) -> dict[str, Any]:
        """The JSON Schemas that the operation refers to, by name."""
        contents = [self.takes or {}, *(said.content for said in self.answers.values())]
        found: dict[str, Any] = {}
        for kind in chain.from_iterable(content.values() for content in contents):
            found |= schema_of(kind)[1]
        return found


def query_parameter(name: str, text: str, **schema: Any) -> dict[str, Any]:
    """An OpenAPI parameter of the query; a text, if its schema says nothing else."""
    shape = {"type": "string", **schema}
    return {"name": name, "in": "query", "required": False, "description": text, "schema": shape}


async def unbound(call: Call) -> Answer:
    """In a table whose doors are served with what one process has: nothing is there yet."""
    raise errors.NotFound


_PROBLEM = {"$ref": "#/components/schemas/Problem"}
# Of every request, before its door is known.
_ALWAYS = (errors.BadRequest, errors.HeadersTooLarge, errors.RequestTimeout, errors.NotFound)


def _response(said: Said) -> dict[str, Any]:
    response: dict[str, Any] = {"description": said.description}
    return {**response, "content": _content(said.content)} if said.content else response


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


async def _emit(call: Call) -> Answer:
    stream = utf8_path(call.parameters[0])
    desk = Desk(call.log, call.gate, call.book)
    return await emit_door(desk, call.emits, call.scope, call.incoming, stream)


async def _metrics(call: Call) -> Answer:
    return await metrics_door()


async def _health(call: Call) -> Answer:
    return await health_door()


async def _ready(call: Call) -> Answer:
    return await ready_door(call.log, call.gate, call.health, call.scope["headers"])


EMIT_REFUSES: tuple[type[errors.EventHubError], ...] = (
    errors.MalformedJson,
    errors.InvalidUtf8,
    errors.TooDeep,
    errors.NumberOutOfRange,
    errors.InvalidField,
    errors.UnknownField,
    errors.MissingField,
    errors.FieldTooLong,
    errors.EmptyBatch,
    errors.UnknownChannel,
    errors.InvalidMask,
    errors.Unauthenticated,
    errors.InvalidCredentials,
    errors.TokenExpired,
    errors.Forbidden,
    errors.UnknownStream,
    errors.RequestTimeout,
    errors.ProducerWindow,
    errors.BodyTooLarge,
    errors.BatchTooLarge,
    errors.EventTooLarge,
    errors.UnsupportedMediaType,
    MalformedXml,
    InvalidXml,
    TypeViolation,
    TypeTooCostly,
    UndeclaredType,
    errors.DatabaseUnavailable,
    DatabaseBusy,
    errors.OutcomeUnknown,
    errors.Overloaded,
    errors.TooManyRequests,
    TransientUnavailable,
    StorageFull,
)

_CLOUD_EVENT = {"type": "object", "description": "CloudEvents 1.0, JSON format."}
_STATUS = {"type": "object", "properties": {"status": {"type": "string"}}}
_TEXT = {"type": "string"}

DOORS: tuple[Door, ...] = (
    Door(
        method="POST",
        path="/v1/streams/{stream}/events",
        summary="Emit events",
        description=(
            "One event, an array, or NDJSON; all are stored or none. Answers after the commit, with"
            f" the numbers given. At most {limits.BATCH_EVENTS_MAX} events and"
            f" {limits.BODY_BYTES_MAX} bytes. An event with an `id` of `incarnation` and"
            " `sequence` may be repeated safely: it is stored once, and a repeat is answered under"
            " `duplicates`. So may one whose `id` is a text, and any within a day in a request with"
            " an `Idempotency-Key`. With headers `ce-*`, the body is the data of a CloudEvent."
        ),
        takes={
            JSON: EventIn | list[EventIn],
            NDJSON: {"type": "string", "description": "one EventIn per line"},
            cloudevents.STRUCTURED: _CLOUD_EVENT,
            cloudevents.BATCH: {"type": "array", "items": _CLOUD_EVENT},
            oif.CONTENT_TYPE: {"type": "string", "description": "`name: value; ...`"},
            fox_xml.CONTENT_TYPES[0]: _TEXT,
        },
        answers={"200": Said("Stored and durable.", {JSON: EmittedJson})},
        refuses=EMIT_REFUSES,
        run=_emit,
    ),
    Door(
        method="GET",
        path="/healthz",
        summary="Is the process alive?",
        description="Touches no dependency.",
        answers={"200": Said("Alive.", {JSON: _STATUS})},
        run=_health,
    ),
    Door(
        method="GET",
        path="/readyz",
        summary="Can requests be served?",
        description=(
            "503 while the database is away or `system` is not followed; else 200, also when the"
            " hub is `degraded`: it emits and listens, but some component does not work. Lists each"
            " component; with a key or token also the reason and since when."
        ),
        answers={
            "200": Said("Ready, or degraded.", {JSON: ReadinessJson}),
            "503": Said("Not ready.", {JSON: ReadinessJson}),
        },
        refuses=(errors.InvalidCredentials, errors.TokenExpired),
        run=_ready,
    ),
    Door(
        method="GET",
        path="/metrics",
        summary="Prometheus metrics",
        description="Of all web processes of this hub when run by `manage.py up`.",
        answers={"200": Said("Prometheus text format.", {"text/plain": _TEXT})},
        run=_metrics,
    ),
)
