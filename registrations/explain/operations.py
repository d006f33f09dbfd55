"""The doors that look at the log, in a table like that of the other hot doors: it drives dispatch
and OpenAPI. Plain module.
"""

from eventhub.base import errors, limits
from eventhub.event.inbound import JSON, NDJSON
from eventhub.eventlog.errors import TransientUnavailable
from eventhub.http.routes import ResponseSpec, Route, query_parameter
from registrations.explain.dry_run import DryRunJson
from registrations.explain.dry_run_request import DryRunRequest
from registrations.explain.routes import ExplainRoutes
from registrations.explain.search import EventMatchesJson
from registrations.filters import errors as filter_errors

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
    filter_errors.UnknownLanguage,
    filter_errors.FilterSyntax,
    filter_errors.FilterTooLarge,
    errors.SegmentMismatch,
    errors.RequestTimeout,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
)

_ROUTES = ExplainRoutes()

EXPLAIN_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/filters/dry-run",
        summary="Run a draft of a filter over events of the log",
        description=(
            "As many as there are from the last N or from a start on, at most"
            f" {limits.DRY_RUN_EVENTS_MAX} events and {limits.DRY_RUN_S_MAX:.0f} s; `stopped` says"
            " whether a bound did. With `Accept: application/x-ndjson` lines of progress come on"
            " the way (`op`: `progress`, then `end` or `error`); closing the connection ends it."
        ),
        body={JSON: DryRunRequest},
        responses={
            "200": ResponseSpec(
                "How many matched, when, and some of them.",
                {JSON: DryRunJson, NDJSON: {"type": "string"}},
            )
        },
        raises=(*_LOG, *_FILTER),
        handler=_ROUTES.dry_run,
    ),
    Route(
        method="GET",
        path="/v1/streams/{stream}/events/{sequence}/matches",
        summary="Which registrations an event matched, and which it nearly did",
        description=(
            "Of the caller's client; of a zone's manager all of the zone. At most"
            f" {limits.MATCHES_SCANNED_MAX} registrations or {limits.MATCHES_S_MAX:.0f} s at a"
            " time: then `truncated` is true, and `next` goes on."
        ),
        parameters=(query_parameter("after", "The `next` of the answer before."),),
        responses={
            "200": ResponseSpec(
                "The matches, and the nearest misses with what failed.", {JSON: EventMatchesJson}
            )
        },
        raises=(*_LOG, errors.UnknownEvent),
        handler=_ROUTES.matches,
    ),
)
