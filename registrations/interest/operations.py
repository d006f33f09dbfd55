"""The specification of the routes of interest; it drives dispatch and OpenAPI. Plain module."""

from eventhub.access.authorizer import Authorizer
from eventhub.base import errors
from eventhub.event.inbound import JSON
from eventhub.http.routes import ResponseSpec, Route, query_parameter, unbound
from registrations.interest.live import Closures
from registrations.interest.routes import ClosureJson, InterestJson, InterestRequest, InterestRoutes

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

INTEREST_ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/v1/streams/{stream}/closure",
        summary="Get the closure of a stream",
        description=(
            "The closure is one filter that matches every event that a live registration matches"
            " and, on a stream with `quench`, every event that a listener matches. The caller needs"
            " a grant to emit into the stream or to manage it. With `If-None-Match`, 304 says that"
            " the closure is unchanged."
        ),
        parameters=(
            query_parameter(
                "audience",
                "Client groups separated by commas; only the interest of their clients counts.",
            ),
        ),
        responses={
            "200": ResponseSpec("The closure.", {JSON: ClosureJson}),
            "304": ResponseSpec("The closure with that tag is current."),
        },
        raises=_REFUSES,
        handler=unbound,
    ),
    Route(
        method="POST",
        path="/v1/streams/{stream}/interest",
        summary="Check the interest in events of a shape",
        description=(
            "A shape gives the known fields of an event; the others may be anything. `no` is"
            " certain: no client is interested in any event of that shape."
        ),
        body={JSON: InterestRequest},
        responses={"200": ResponseSpec("Whether a client is interested.", {JSON: InterestJson})},
        raises=(
            *_REFUSES,
            errors.MalformedJson,
            errors.TooDeep,
            errors.NumberOutOfRange,
            errors.MissingField,
            errors.BodyTooLarge,
            errors.RequestTimeout,
        ),
        handler=unbound,
        only_reads=True,
    ),
)


def interest_routes(authorizer: Authorizer, closures: Closures) -> tuple[Route, ...]:
    """Return the routes of the table with their handlers."""
    routes = InterestRoutes(authorizer, closures)
    closure, interest = INTEREST_ROUTES
    return closure._replace(handler=routes.closure), interest._replace(handler=routes.interest)
