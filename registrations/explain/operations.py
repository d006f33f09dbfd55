"""The specification of dry runs and searches; it drives dispatch and OpenAPI. Plain module."""

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
            "Evaluates the last N events, or those from a start on, at most"
            f" {limits.DRY_RUN_EVENTS_MAX} events and {limits.DRY_RUN_S_MAX:.0f} s; `stopped` says"
            " why it ended. With `Accept: application/x-ndjson` the answer has lines of progress"
            " (`op`: `progress`, then `end` or `error`); closing the connection ends the run."
        ),
        body={JSON: DryRunRequest},
        responses={
            "200": ResponseSpec(
                "The number of matches over time, and samples.",
                {JSON: DryRunJson, NDJSON: {"type": "string"}},
            )
        },
        raises=(*_LOG, *_FILTER),
        handler=_ROUTES.dry_run,
        only_reads=True,
    ),
    Route(
        method="GET",
        path="/v1/streams/{stream}/events/{sequence}/matches",
        summary="List the registrations that an event matched, and the nearest misses",
        description=(
            "Evaluates the registrations of the caller's client, or of the whole zone for a manager"
            f" of the zone: at most {limits.MATCHES_SCANNED_MAX} registrations, for at most"
            f" {limits.MATCHES_S_MAX:.0f} s. Then `truncated` is true; continue with `next`."
        ),
        parameters=(query_parameter("after", "The `next` of the previous answer."),),
        responses={
            "200": ResponseSpec(
                "The matches, and the nearest misses with the failed tests.",
                {JSON: EventMatchesJson},
            )
        },
        raises=(*_LOG, errors.UnknownEvent),
        handler=_ROUTES.matches,
    ),
)
