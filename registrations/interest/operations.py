"""The doors of what is wanted in a table like that of the other hot doors: it drives dispatch and
OpenAPI. Plain module.
"""

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
        summary="What is wanted of a stream",
        description=(
            "One filter that lets through what any live registration asks for, and on a stream with"
            " `quench` any listen. For who may emit into the stream, or manages it. With"
            " `If-None-Match` 304 says that it is still the same."
        ),
        parameters=(
            query_parameter(
                "audience", "Groups, commas between: only what their clients want counts."
            ),
        ),
        responses={
            "200": ResponseSpec("The closure.", {JSON: ClosureJson}),
            "304": ResponseSpec("The one with that tag is current."),
        },
        raises=_REFUSES,
        handler=unbound,
    ),
    Route(
        method="POST",
        path="/v1/streams/{stream}/interest",
        summary="Would anybody want an event of a shape?",
        description=(
            "A shape is what is known of an event; the rest may be anything. `no` is certain:"
            " nobody wants any event of that shape."
        ),
        body={JSON: InterestRequest},
        responses={"200": ResponseSpec("Interested, or not.", {JSON: InterestJson})},
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
    ),
)


def interest_routes(authorizer: Authorizer, closures: Closures) -> tuple[Route, ...]:
    """The doors of the table, served."""
    doors = InterestRoutes(authorizer, closures)
    closure, interest = INTEREST_ROUTES
    return closure._replace(handler=doors.closure), interest._replace(handler=doors.interest)
