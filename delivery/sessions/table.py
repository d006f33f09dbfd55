"""The listen doors in a table like that of the other hot doors: it drives dispatch and OpenAPI.
Plain.
"""

from typing import Any

from delivery.sessions import errors as own
from delivery.sessions.door import ListenDoor
from delivery.sessions.keeper import Keeper
from delivery.sessions.listening import Sources
from delivery.sessions.query import KINDS
from delivery.sessions.raw import RAW_KINDS, RawDoor
from eventhub import errors, limits
from eventhub.doors.http import Answer
from eventhub.doors.table import Call, Door, ref
from eventhub.eventlog.archive.reader import Archive
from registrations.errors import (
    FilterSyntax,
    FilterTooLarge,
    UnknownLanguage,
    UnknownRegistration,
)
from registrations.lang.languages import LANGUAGES

LISTEN_REFUSES: tuple[type[errors.EventHubError], ...] = (
    errors.MalformedJson,
    errors.InvalidUtf8,
    errors.InvalidField,
    errors.UnknownField,
    errors.FieldTooLong,
    errors.UnknownChannel,
    errors.InvalidMask,
    errors.InvalidCursor,
    errors.MissingField,
    errors.NumberOutOfRange,
    errors.BodyNotFilterable,
    FilterSyntax,
    FilterTooLarge,
    UnknownLanguage,
    errors.Unauthenticated,
    errors.InvalidCredentials,
    errors.TokenExpired,
    errors.Forbidden,
    errors.UnknownStream,
    UnknownRegistration,
    own.NotAcceptable,
    errors.SegmentMismatch,
    errors.Gone,
    errors.TooManyRequests,
    errors.DatabaseUnavailable,
    errors.Overloaded,
)


_SEGMENT_REFUSES: tuple[type[errors.EventHubError], ...] = (
    errors.InvalidUtf8,
    errors.Unauthenticated,
    errors.InvalidCredentials,
    errors.TokenExpired,
    errors.Forbidden,
    errors.UnknownStream,
    own.UnknownSegment,
    own.NotAcceptable,
    own.SegmentOpen,
    errors.Gone,
    errors.TooManyRequests,
    errors.DatabaseUnavailable,
    errors.Overloaded,
)


def _query(name: str, text: str, **schema: Any) -> dict[str, Any]:
    shape = {"type": "string", **schema}
    return {"name": name, "in": "query", "required": False, "description": text, "schema": shape}


_ASKS: tuple[dict[str, Any], ...] = (
    _query(
        "from",
        "`now` (default), `oldest`, `boot`, a cursor `<segment>:<sequence>`, or a time (RFC 3339)."
        " The header `Last-Event-ID` of an EventSource counts instead.",
    ),
    _query("mask", "64 channel bits as a decimal number."),
    _query("channels", "Names of channels, instead of `mask`; commas between."),
    _query("domain", "The event's domain."),
    _query("type", "The event's type."),
    _query("attributes", "A JSON object of pairs that the event's attributes contain."),
    _query("application", "One of the event's applications."),
    _query(
        "language",
        "The language of `filter`; without it the parameters above choose.",
        enum=list(LANGUAGES),
    ),
    _query("filter", "A filter in that language: a text, or JSON as text."),
    _query("registrations", "Own registrations instead of a filter; commas between their ids."),
    _query(
        "state",
        "Of a keyed stream, with server-sent events: the snapshot after a `gap` (default),"
        " `always` first, or `never`.",
        enum=["gap", "always", "never"],
    ),
    _query(
        "timeout",
        "Seconds to wait for the first event; 0 (default): a page of history.",
        type="number",
        minimum=0,
        maximum=limits.POLL_TIMEOUT_S_MAX,
    ),
    _query(
        "limit",
        f"At most so many events; {limits.HISTORY_EVENTS_DEFAULT} by default and"
        f" {limits.HISTORY_EVENTS_MAX} at most in one piece, everything up to the head in lines"
        " and protobuf.",
        type="integer",
        minimum=1,
    ),
    _query("order", "`backward`: the newest before `from` first.", enum=["forward", "backward"]),
    _query("access_token", "A connection token, for those who cannot send headers."),
)


def _event_page() -> dict[str, Any]:
    text, number = {"type": "string"}, {"type": "integer", "format": "int64"}
    cursor = {"segment": {"type": "string", "format": "uuid"}, "sequence": number}
    item = {
        **cursor,
        "prev": number,
        "liveness": {"type": "string", "enum": ["live", "recovery", "playback"]},
        "appended_at": {"type": "string", "format": "date-time"},
        "event": {"type": "object"},
    }
    return {
        "type": "object",
        "required": ["stream", "events", "cursor", "head", "first"],
        "properties": {
            "stream": text,
            "events": {"type": "array", "items": {"type": "object", "properties": item}},
            "cursor": {"type": "object", "properties": cursor},
            "head": number,
            "first": number,
        },
    }


async def _unbound(call: Call) -> Answer:
    raise errors.NotFound


LISTEN_DOORS: tuple[Door, ...] = (
    Door(
        method="GET",
        path="/v1/streams/{stream}/events",
        summary="Listen to a stream, or read its history",
        description=(
            "By `Accept`: a page in JSON, answered at the first event or empty after `timeout`;"
            " lines (NDJSON) or length-delimited ServerFrame messages (protobuf, the stored bytes"
            " inside) up to the head; server-sent events without end; a batch of CloudEvents."
            " `cursor` is where to go on; `prev` proves that nothing is missing."
        ),
        asks=_ASKS,
        answers={
            "200": {
                "description": "Events in the stream's order, or backward.",
                "content": {
                    kind.decode(): {"schema": ref("EventPage") if at == 0 else {"type": "string"}}
                    for at, kind in enumerate(KINDS)
                },
            }
        },
        refuses=LISTEN_REFUSES,
        run=_unbound,
    ),
    Door(
        method="GET",
        path="/v1/streams/{stream}/segments/{segment}/raw",
        summary="A sealed segment as it is stored",
        description=(
            "Its events that the client may see, as length-delimited ServerFrame messages; takes"
            " the grant `listen`. An operator's token gets the Parquet file of an archived segment,"
            " unless `Accept` asks for messages."
        ),
        answers={
            "200": {
                "description": "The segment, piece by piece.",
                "content": {
                    kind.decode(): {"schema": {"type": "string", "format": "binary"}}
                    for kind in RAW_KINDS
                },
            }
        },
        refuses=_SEGMENT_REFUSES,
        run=_unbound,
    ),
)

LISTEN_SCHEMAS: dict[str, Any] = {"EventPage": _event_page()}


def listen_doors(sources: Sources, keeper: Keeper, archive: Archive | None) -> tuple[Door, ...]:
    """The doors of the table, served."""
    listen, raw = LISTEN_DOORS
    return (
        listen._replace(run=ListenDoor(sources, keeper)),
        raw._replace(run=RawDoor(sources, keeper, archive)),
    )
