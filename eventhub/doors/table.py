"""The hot doors in one table: their paths, what they take and answer, their errors; it drives
dispatch and OpenAPI. Plain.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from eventhub import errors, limits
from eventhub.access.gate import Gate
from eventhub.doors.emit import Desk, emit_door
from eventhub.doors.health import OVERALL, STATUSES, Health
from eventhub.doors.http import Answer, Incoming, Scope, Stream, utf8_path
from eventhub.doors.operations import health_door, metrics_door, ready_door
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.errors import InvalidXml, MalformedXml
from eventhub.event.inbound import JSON, NDJSON, EventIn
from eventhub.eventlog.errors import DatabaseBusy, StorageFull, TransientUnavailable
from eventhub.eventlog.log import Log
from eventhub.fair import Admission
from eventhub.types.book import Book
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType


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


class Door(NamedTuple):
    """One method of one path. `run` answers or raises one of `refuses`."""

    method: str
    path: str
    summary: str
    description: str
    answers: dict[str, Any]  # OpenAPI responses that are no errors
    run: Run
    refuses: tuple[type[errors.EventHubError], ...] = ()
    takes: dict[str, Any] | None = None  # OpenAPI content of the request
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
            "responses": {**self.answers, **_problem_responses((*_ALWAYS, *self.refuses))},
        }
        if self.takes is not None:
            operation["requestBody"] = {"required": True, "content": self.takes}
        known = errors.Unauthenticated in self.refuses
        operation["security"] = [{"bearer": []}] if known else []
        return operation


# Of every request, before its door is known.
_ALWAYS = (errors.BadRequest, errors.HeadersTooLarge, errors.RequestTimeout, errors.NotFound)


def _problem_responses(refuses: tuple[type[errors.EventHubError], ...]) -> dict[str, Any]:
    by_status: dict[str, list[str]] = {}
    for error in dict.fromkeys(refuses):
        by_status.setdefault(str(error.status), []).append(error.code)
    return {
        status: {
            "description": " or ".join(f"`{code}`" for code in codes),
            "content": {"application/problem+json": {"schema": ref("Problem")}},
        }
        for status, codes in sorted(by_status.items())
    }


def ref(name: str) -> dict[str, str]:
    """A schema of the document, by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _json_answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"200": {"description": description, "content": {JSON: {"schema": schema}}}}


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
            JSON: {
                "schema": {"oneOf": [ref("EventIn"), {"type": "array", "items": ref("EventIn")}]}
            },
            NDJSON: {"schema": {"type": "string", "description": "one EventIn per line"}},
            cloudevents.STRUCTURED: {"schema": _CLOUD_EVENT},
            cloudevents.BATCH: {"schema": {"type": "array", "items": _CLOUD_EVENT}},
            oif.CONTENT_TYPE: {"schema": {"type": "string", "description": "`name: value; ...`"}},
            fox_xml.CONTENT_TYPES[0]: {"schema": {"type": "string"}},
        },
        answers=_json_answer("Stored and durable.", ref("Emitted")),
        refuses=EMIT_REFUSES,
        run=_emit,
    ),
    Door(
        method="GET",
        path="/healthz",
        summary="Is the process alive?",
        description="Touches no dependency.",
        answers=_json_answer("Alive.", _STATUS),
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
            **_json_answer("Ready, or degraded.", ref("Readiness")),
            "503": {"description": "Not ready.", "content": {JSON: {"schema": ref("Readiness")}}},
        },
        refuses=(errors.InvalidCredentials, errors.TokenExpired),
        run=_ready,
    ),
    Door(
        method="GET",
        path="/metrics",
        summary="Prometheus metrics",
        description="Of all web processes of this hub when run by `manage.py up`.",
        answers={"200": {"description": "Prometheus text format.", "content": {"text/plain": {}}}},
        run=_metrics,
    ),
)


def component_schemas() -> dict[str, Any]:
    """The schemas that the operations refer to."""
    _, schemas = msgspec.json.schema_components(
        [EventIn], ref_template="#/components/schemas/{name}"
    )
    text = {"type": "string"}
    number = {"type": "integer", "format": "int64"}
    run = {"segment": {"type": "string", "format": "uuid"}, "first": number, "last": number}
    duplicate = {"index": {"type": "integer"}, "segment": text, "sequence": number}
    return {
        **schemas,
        "Readiness": _readiness_schema(),
        "Emitted": _object(
            {
                "stream": text,
                "ranges": {"type": "array", "items": _object(run)},
                "duplicates": {"type": "array", "items": _object(duplicate)},
            }
        ),
    }


def _readiness_schema() -> dict[str, Any]:
    time = {"type": ["string", "null"], "format": "date-time"}
    component = {
        "type": "object",
        "required": ["name", "status"],
        "properties": {
            "name": {"type": "string"},
            "status": {"type": "string", "enum": list(STATUSES)},
            "reason": {"type": ["string", "null"]},
            "since": time,
        },
    }
    return _object(
        {
            "status": {"type": "string", "enum": list(OVERALL)},
            "as_of": time,
            "components": {"type": "array", "items": component},
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}
