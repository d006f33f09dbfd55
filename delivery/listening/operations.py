"""The listen doors in a table like that of the other hot doors: it drives dispatch and OpenAPI.
Plain module.
"""

from delivery.listening import errors as own
from delivery.listening import query
from delivery.listening.answers import EventPageJson
from delivery.listening.keeper import Keeper
from delivery.listening.listener import Sources
from delivery.listening.raw_segments import RAW_KINDS, RawDoor
from delivery.listening.routes import ListenDoor
from eventhub.base import errors, limits
from eventhub.eventlog.archive.reader import Archive
from eventhub.http.routes import ResponseSpec, Route, query_parameter, unbound
from registrations.errors import UnknownRegistration
from registrations.filters.errors import FilterSyntax, FilterTooLarge, UnknownLanguage
from registrations.filters.languages import LANGUAGES

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


_ASKS = (
    query_parameter(
        "from",
        "`now` (default), `oldest`, `boot`, a cursor `<segment>:<sequence>`, or a time (RFC 3339)."
        " The header `Last-Event-ID` of an EventSource counts instead.",
    ),
    query_parameter("mask", "64 channel bits as a decimal number."),
    query_parameter("channels", "Names of channels, instead of `mask`; commas between."),
    query_parameter("domain", "The event's domain."),
    query_parameter("type", "The event's type."),
    query_parameter("attributes", "A JSON object of pairs that the event's attributes contain."),
    query_parameter("application", "One of the event's applications."),
    query_parameter(
        "language",
        "The language of `filter`; without it the parameters above choose.",
        enum=list(LANGUAGES),
    ),
    query_parameter("filter", "A filter in that language: a text, or JSON as text."),
    query_parameter(
        "registrations", "Own registrations instead of a filter; commas between their ids."
    ),
    query_parameter(
        "state",
        "Of a keyed stream, with server-sent events: the snapshot after a `gap` (default),"
        " `always` first, or `never`.",
        enum=["gap", "always", "never"],
    ),
    query_parameter(
        "timeout",
        "Seconds to wait for the first event; 0 (default): a page of history.",
        type="number",
        minimum=0,
        maximum=limits.POLL_TIMEOUT_S_MAX,
    ),
    query_parameter(
        "limit",
        f"At most so many events; {limits.HISTORY_EVENTS_DEFAULT} by default and"
        f" {limits.HISTORY_EVENTS_MAX} at most in one piece, everything up to the head in lines"
        " and protobuf.",
        type="integer",
        minimum=1,
    ),
    query_parameter(
        "order", "`backward`: the newest before `from` first.", enum=["forward", "backward"]
    ),
    query_parameter("access_token", "A connection token, for those who cannot send headers."),
)


LISTEN_ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/v1/streams/{stream}/events",
        summary="Listen to a stream, or read its history",
        description=(
            "By `Accept`: a page in JSON, answered at the first event or empty after `timeout`;"
            " lines (NDJSON) or length-delimited ServerFrame messages (protobuf, the stored bytes"
            " inside) up to the head; server-sent events without end; a batch of CloudEvents."
            " `cursor` is where to go on; `prev` proves that nothing is missing."
        ),
        parameters=_ASKS,
        responses={
            "200": ResponseSpec(
                "Events in the stream's order, or backward.",
                {
                    kind.decode(): EventPageJson if kind == query.JSON else {"type": "string"}
                    for kind in query.KINDS
                },
            )
        },
        raises=LISTEN_REFUSES,
        handler=unbound,
    ),
    Route(
        method="GET",
        path="/v1/streams/{stream}/segments/{segment}/raw",
        summary="A sealed segment as it is stored",
        description=(
            "Its events that the client may see, as length-delimited ServerFrame messages; takes"
            " the grant `listen`. An operator's token gets the Parquet file of an archived segment,"
            " unless `Accept` asks for messages."
        ),
        responses={
            "200": ResponseSpec(
                "The segment, piece by piece.",
                {kind.decode(): {"type": "string", "format": "binary"} for kind in RAW_KINDS},
            )
        },
        raises=_SEGMENT_REFUSES,
        handler=unbound,
    ),
)


def listen_routes(sources: Sources, keeper: Keeper, archive: Archive | None) -> tuple[Route, ...]:
    """The doors of the table, served."""
    listen, raw = LISTEN_ROUTES
    return (
        listen._replace(handler=ListenDoor(sources, keeper)),
        raw._replace(handler=RawDoor(sources, keeper, archive)),
    )
