"""The table of the listening routes, which drives dispatch and OpenAPI like that of the other hot
routes. Plain module.
"""

from delivery.listening import errors as own
from delivery.listening import query
from delivery.listening.raw_segments import RAW_MEDIA_TYPES, RawSegmentHandler
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.responses import EventPageJson
from delivery.listening.routes import ListenHandler
from delivery.listening.services import ListenerServices
from eventhub.access.quotas import SocketsLimited
from eventhub.base import errors, limits
from eventhub.eventlog.archive.reader import Archive
from eventhub.http.routes import SESSION, ResponseSpec, Route, query_parameter, unbound
from registrations.errors import UnknownRegistration
from registrations.filters.errors import FilterSyntax, FilterTooLarge, UnknownLanguage
from registrations.filters.languages import LANGUAGES

LISTEN_ERRORS: tuple[type[errors.EventHubError], ...] = (
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
    SocketsLimited,
    errors.DatabaseUnavailable,
    errors.Overloaded,
)


_SEGMENT_ERRORS: tuple[type[errors.EventHubError], ...] = (
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
    SocketsLimited,
    errors.DatabaseUnavailable,
    errors.Overloaded,
)


_PARAMETERS = (
    query_parameter(
        "from",
        "`now` (default), `oldest`, `boot`, a cursor `<segment>:<sequence>`, or a time (RFC 3339)."
        " The header `Last-Event-ID` of an EventSource overrides it.",
    ),
    query_parameter("mask", "64 channel bits as a decimal number."),
    query_parameter("channels", "Names of channels instead of `mask`, separated by commas."),
    query_parameter("domain", "The event's domain."),
    query_parameter("type", "The event's type."),
    query_parameter(
        "attributes", "A JSON object of pairs that the event's attributes must contain."
    ),
    query_parameter("application", "One of the event's applications."),
    query_parameter(
        "language",
        "The language of `filter`; without it, the parameters above select events.",
        enum=list(LANGUAGES),
    ),
    query_parameter("filter", "A filter in that language, as text or JSON text."),
    query_parameter(
        "registrations",
        "Ids of the client's own registrations instead of a filter, separated by commas.",
    ),
    query_parameter(
        "state",
        "With server-sent events of a keyed stream: send the snapshot after a `gap` (default),"
        " `always` first, or `never`.",
        enum=["gap", "always", "never"],
    ),
    query_parameter(
        "signature",
        "With `true`, each event has the signature of its tags, next to `liveness`.",
        enum=["true", "false"],
    ),
    query_parameter(
        "timeout",
        "Seconds to wait for the first event. 0 (default): do not wait.",
        type="number",
        minimum=0,
        maximum=limits.POLL_TIMEOUT_S_MAX,
    ),
    query_parameter(
        "limit",
        f"Maximum number of events. A page: {limits.HISTORY_EVENTS_DEFAULT} by default,"
        f" {limits.HISTORY_EVENTS_MAX} at most. Lines and protobuf: every event up to the head by"
        " default.",
        type="integer",
        minimum=1,
    ),
    query_parameter(
        "order", "`backward`: events before `from`, newest first.", enum=["forward", "backward"]
    ),
    query_parameter("access_token", "A connection token, for clients that cannot send headers."),
    SESSION,
)


LISTEN_ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/v1/streams/{stream}/events",
        summary="Listen to a stream, or read its history",
        description=(
            "`Accept` selects the format: a page in JSON, returned at the first event or empty"
            " after `timeout`; lines (NDJSON) or length-delimited ServerFrame messages (protobuf,"
            " with the stored bytes) up to the head; server-sent events without end; a batch of"
            " CloudEvents. Continue from `cursor`; `prev` proves that no event is missing."
        ),
        parameters=_PARAMETERS,
        responses={
            "200": ResponseSpec(
                "Events in order of the stream, or backward.",
                {
                    media.decode(): EventPageJson if media == query.JSON else {"type": "string"}
                    for media in query.MEDIA_TYPES
                },
            )
        },
        raises=LISTEN_ERRORS,
        handler=unbound,
    ),
    Route(
        method="GET",
        path="/v1/streams/{stream}/segments/{segment}/raw",
        summary="Download a sealed segment as it is stored",
        description=(
            "The events that the client may see, as length-delimited ServerFrame messages. Requires"
            " the grant `listen`. An operator's token gets the Parquet file of an archived segment,"
            " unless `Accept` selects messages."
        ),
        responses={
            "200": ResponseSpec(
                "The segment, in chunks.",
                {
                    media.decode(): {"type": "string", "format": "binary"}
                    for media in RAW_MEDIA_TYPES
                },
            )
        },
        raises=_SEGMENT_ERRORS,
        handler=unbound,
    ),
)


def listen_routes(
    services: ListenerServices, monitor: ReaderMonitor, archive: Archive | None
) -> tuple[Route, ...]:
    """Return the routes of the table with their handlers."""
    listen, raw = LISTEN_ROUTES
    return (
        listen._replace(handler=ListenHandler(services, monitor)),
        raw._replace(handler=RawSegmentHandler(services, monitor, archive)),
    )
