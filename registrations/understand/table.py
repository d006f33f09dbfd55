"""The doors that look at the log, in a table like that of the other hot doors: it drives dispatch
and OpenAPI. Plain.
"""

from typing import Any

from eventhub import errors, limits
from eventhub.doors.table import Door, ref
from eventhub.event.inbound import JSON, NDJSON
from eventhub.eventlog.errors import TransientUnavailable
from registrations import errors as own
from registrations.understand.doors import UnderstandDoors

_LOG: tuple[type[errors.EventHubError], ...] = (
    errors.Unauthenticated,
    errors.InvalidCredentials,
    errors.TokenExpired,
    errors.Forbidden,
    errors.UnknownStream,
    errors.Gone,
    errors.InvalidUtf8,
    errors.InvalidField,
    errors.UnknownField,
    errors.TooManyRequests,
    errors.DatabaseUnavailable,
    TransientUnavailable,
)
_FILTER: tuple[type[errors.EventHubError], ...] = (
    errors.MalformedJson,
    errors.TooDeep,
    errors.NumberOutOfRange,
    errors.MissingField,
    errors.FieldTooLong,
    errors.BodyNotFilterable,
    errors.UnknownChannel,
    errors.InvalidMask,
    errors.InvalidCursor,
    errors.InvalidName,
    own.UnknownLanguage,
    own.FilterSyntax,
    own.FilterTooLarge,
    errors.SegmentMismatch,
    errors.RequestTimeout,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
)

_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer", "format": "int64"}
_WHY: dict[str, Any] = {"type": "string", "description": "In words."}


def _object(properties: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return {**found, "required": list(properties)} if required else found


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


_CURSOR = _object({"segment": {"type": "string", "format": "uuid"}, "sequence": _NUMBER})
_SERIES = _object(
    {
        "begins_at": _or_null({"type": "string", "format": "date-time"}),
        "width_s": {"type": "number", "description": "Seconds of one count."},
        "looked_at": _list({"type": "integer"}),
        "matched": _list({"type": "integer"}),
    }
)
_SAMPLE = _object(
    {
        **_CURSOR["properties"],
        "appended_at": {"type": "string", "format": "date-time"},
        "event": {"type": "object", "description": "Without its body."},
    }
)
_STANDING = {
    "id": _NUMBER,
    "client": _TEXT,
    "version": {"type": "integer", "description": "That held for the event, or the current one."},
    "current": {"type": "boolean"},
    "endpoint": _or_null(_NUMBER),
    "group": _or_null(_TEXT),
}

UNDERSTAND_SCHEMAS: dict[str, Any] = {
    "DryRunRequest": _object(
        {
            "stream": _TEXT,
            "language": _TEXT,
            "filter": {"description": "A text, or an object where the language is of JSON."},
            "domain": _TEXT,
            "type": _TEXT,
            "application": _TEXT,
            "attributes": {"type": "object"},
            "last": {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.DRY_RUN_EVENTS_MAX,
                "default": limits.DRY_RUN_EVENTS_DEFAULT,
                "description": "The last so many events; or `from`.",
            },
            "from": {
                "type": "string",
                "description": "`oldest`, `boot`, a cursor `<segment>:<sequence>`, or a time.",
            },
            "to": {"type": "string", "description": "A cursor or a time; else the head."},
            "samples": {"type": "integer", "minimum": 0, "maximum": limits.DRY_RUN_SAMPLES_MAX},
            "mask": {"oneOf": [_TEXT, _NUMBER]},
            "channels": _list(_TEXT),
        },
        required=False,
    ),
    "DryRun": _object(
        {
            "stream": _TEXT,
            "predicate": _TEXT,
            "from": _CURSOR,
            "cursor": _CURSOR,
            "to": _NUMBER,
            "stopped": {"type": "string", "enum": ["end", "events", "time", "gap", "closed"]},
            "took_s": {"type": "number"},
            "looked_at": _NUMBER,
            "matched": _NUMBER,
            "series": _SERIES,
            "rate_per_hour": _or_null({"type": "number"}),
            "samples": _object({"first": _list(_SAMPLE), "last": _list(_SAMPLE)}),
        }
    ),
    "EventMatches": _object(
        {
            "stream": _TEXT,
            **_CURSOR["properties"],
            "looked_at": {"type": "integer", "description": "Registrations."},
            "truncated": {"type": "boolean"},
            "next": _or_null({"type": "string", "description": "Pass as `after` to go on."}),
            "matched": {"type": "integer"},
            "matches": _list(_object(_STANDING)),
            "nearest": _list(
                _object(
                    {
                        **_STANDING,
                        "predicate": _TEXT,
                        "tests": {"type": "integer"},
                        "failed": _list(_object({"predicate": _TEXT, "why": _WHY})),
                        "against": _list(
                            _object({"name": _TEXT, "held": {"type": "boolean"}, "why": _WHY})
                        ),
                    }
                )
            ),
        }
    ),
}

_DOORS = UnderstandDoors()

UNDERSTAND_DOORS: tuple[Door, ...] = (
    Door(
        method="POST",
        path="/v1/filters/dry-run",
        summary="Run a draft of a filter over events of the log",
        description=(
            "As many as there are from the last N or from a start on, at most"
            f" {limits.DRY_RUN_EVENTS_MAX} events and {limits.DRY_RUN_S_MAX:.0f} s; `stopped` says"
            " whether a bound did. With `Accept: application/x-ndjson` lines of progress come on"
            " the way (`op`: `progress`, then `end` or `error`); closing the connection ends it."
        ),
        takes={JSON: {"schema": ref("DryRunRequest")}},
        answers={
            "200": {
                "description": "How many matched, when, and some of them.",
                "content": {
                    JSON: {"schema": ref("DryRun")},
                    NDJSON: {"schema": {"type": "string"}},
                },
            }
        },
        refuses=(*_LOG, *_FILTER),
        run=_DOORS.dry_run,
    ),
    Door(
        method="GET",
        path="/v1/streams/{stream}/events/{sequence}/matches",
        summary="Which registrations an event matched, and which it nearly did",
        description=(
            "Of the caller's client; of a zone's manager all of the zone. At most"
            f" {limits.MATCHES_LOOKS_MAX} registrations or {limits.MATCHES_S_MAX:.0f} s at a time:"
            " then `truncated` is true, and `next` goes on."
        ),
        asks=(
            {
                "name": "after",
                "in": "query",
                "required": False,
                "description": "The `next` of the answer before.",
                "schema": _TEXT,
            },
        ),
        answers={
            "200": {
                "description": "The matches, and the nearest misses with what failed.",
                "content": {JSON: {"schema": ref("EventMatches")}},
            }
        },
        refuses=(*_LOG, errors.UnknownEvent),
        run=_DOORS.matches,
    ),
)
