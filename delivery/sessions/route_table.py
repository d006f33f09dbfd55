"""The table of the routes of delivery to sessions, which drives dispatch and OpenAPI like that of
the other hot routes. Plain module.
"""

from delivery.sessions import errors as own
from delivery.sessions.delivery import SessionDelivery
from delivery.sessions.acknowledgement_route import AcknowledgedJson, AcknowledgeHandler, AcknowledgementsIn
from eventhub.access.sessions import UnknownSession, WrongSessionKind
from eventhub.base import errors
from eventhub.event.inbound import JSON
from eventhub.http.routes import ResponseSpec, Route, unbound

_REFUSES: tuple[type[errors.EventHubError], ...] = (
    errors.InvalidUtf8,
    errors.InvalidField,
    errors.Unauthenticated,
    errors.InvalidCredentials,
    errors.TokenExpired,
    errors.Forbidden,
    WrongSessionKind,
    UnknownSession,
    errors.DatabaseUnavailable,
)

SESSION_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/sessions/{name}/acknowledgements",
        summary="Acknowledge events of a session",
        description=(
            "Of the own client's consumer session of that name, whoever serves it: a connection of"
            " any process, or none. All or nothing; answers after the commit, with the session's"
            " positions. Acknowledging an event again has no effect. Acknowledgements of a"
            " best-effort session have none either."
        ),
        body={JSON: AcknowledgementsIn},
        responses={"200": ResponseSpec("Stored.", {JSON: AcknowledgedJson})},
        raises=(
            *_REFUSES,
            errors.MalformedJson,
            errors.TooDeep,
            errors.NumberOutOfRange,
            errors.UnknownField,
            errors.MissingField,
            errors.FieldTooLong,
            errors.BodyTooLarge,
            errors.RequestTimeout,
            errors.UnsupportedMediaType,
            errors.DatabaseBusy,
            own.StreamOfNoRegistration,
            own.SequenceAhead,
            own.SequencesRequired,
            own.AcknowledgementsFull,
        ),
        handler=unbound,
    ),
)


def session_routes(delivery: SessionDelivery) -> tuple[Route, ...]:
    """Return the routes of the table with their handlers."""
    [acknowledge] = SESSION_ROUTES
    return (acknowledge._replace(handler=AcknowledgeHandler(delivery)),)
