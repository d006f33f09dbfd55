"""The doors of what is wanted in a table like that of the other hot doors: it drives dispatch and
OpenAPI. Plain.
"""

from typing import Any

from eventhub import errors
from eventhub.access.gate import Gate
from eventhub.doors.http import Answer
from eventhub.doors.table import Call, Door, ref
from registrations.closure.door import ClosureDoors
from registrations.closure.live import Closures

_REFUSES: tuple[type[errors.EventHubError], ...] = (
    errors.InvalidUtf8,
    errors.InvalidField,
    errors.UnknownField,
    errors.FieldTooLong,
    errors.Unauthenticated,
    errors.InvalidCredentials,
    errors.TokenExpired,
    errors.Forbidden,
    errors.UnknownStream,
    errors.DatabaseUnavailable,
)
_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_NUMBER: dict[str, Any] = {"type": "integer", "format": "int64"}
_GROUPS = {"type": "array", "items": _TEXT}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_ASKED = _object({"shape": ref("Shape"), "audience": _GROUPS})
_ABOVE = _object({"domain": _TEXT, "type": _TEXT, "above": {"type": "array", "items": _TEXT}})
CLOSURE_SCHEMAS: dict[str, Any] = {
    "Closure": _object(
        {
            "stream": _TEXT,
            "language": {"type": "string", "enum": ["predicate"]},
            "filter": {**_TEXT, "description": "`false` if nothing is wanted."},
            "alternatives": {
                "type": "array",
                "items": _TEXT,
                "description": "The same in parts, of which one must hold.",
            },
            "widened": {
                **_FLAG,
                "description": "It lets through more than is wanted: it would be too large.",
            },
            "above": {
                "type": "array",
                "items": _ABOVE,
                "description": "Declared types that have others above them.",
            },
            "quench": {
                **_FLAG,
                "description": "Listens are in it, and an emitter may leave out what it does not"
                " let through.",
            },
            "tag": {**_TEXT, "description": "Equal while it is the same."},
            "sequence": {**_NUMBER, "description": "Of `system`: what came up to it is in."},
        }
    ),
    "Shape": {
        "type": "object",
        "properties": {
            "domain": _TEXT,
            "type": _TEXT,
            "application": _GROUPS,
            "attributes": {"type": "object"},
            "environment": {"type": "object"},
        },
    },
    "Interest": _object(
        {
            "stream": _TEXT,
            "wanted": {"type": "string", "enum": ["yes", "no", "maybe"]},
            "quench": _FLAG,
            "tag": _TEXT,
            "sequence": _NUMBER,
        }
    ),
}


async def _unbound(call: Call) -> Answer:
    raise errors.NotFound


CLOSURE_DOORS: tuple[Door, ...] = (
    Door(
        method="GET",
        path="/v1/streams/{stream}/closure",
        summary="What is wanted of a stream",
        description=(
            "One filter that lets through what any live registration asks for, and on a stream with"
            " `quench` any listen. For who may emit into the stream, or manages it. With"
            " `If-None-Match` 304 says that it is still the same."
        ),
        asks=(
            {
                "name": "audience",
                "in": "query",
                "required": False,
                "description": "Groups, commas between: only what their clients want counts.",
                "schema": _TEXT,
            },
        ),
        answers={
            "200": {
                "description": "The closure.",
                "content": {"application/json": {"schema": ref("Closure")}},
            },
            "304": {"description": "The one with that tag is current."},
        },
        refuses=_REFUSES,
        run=_unbound,
    ),
    Door(
        method="POST",
        path="/v1/streams/{stream}/interest",
        summary="Would anybody want an event of a shape?",
        description=(
            "A shape is what is known of an event; the rest may be anything. `no` is certain:"
            " nobody wants any event of that shape."
        ),
        takes={
            "application/json": {
                "schema": {**_ASKED, "required": ["shape"]},
            }
        },
        answers={
            "200": {
                "description": "Wanted, or not.",
                "content": {"application/json": {"schema": ref("Interest")}},
            }
        },
        refuses=(
            *_REFUSES,
            errors.MalformedJson,
            errors.TooDeep,
            errors.NumberOutOfRange,
            errors.MissingField,
            errors.BodyTooLarge,
            errors.RequestTimeout,
        ),
        run=_unbound,
    ),
)


def closure_doors(gate: Gate, closures: Closures) -> tuple[Door, ...]:
    """The doors of the table, served."""
    doors = ClosureDoors(gate, closures)
    closure, interest = CLOSURE_DOORS
    return closure._replace(run=doors.closure), interest._replace(run=doors.interest)
