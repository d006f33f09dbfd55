"""The table of the routes of delivery to sessions, which drives dispatch and OpenAPI like that of
the other hot routes. Plain module.
"""

from delivery.listening.errors import NotAcceptable
from delivery.listening.query import SSE
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.services import ListenerServices
from delivery.sessions import errors as own
from delivery.sessions.acknowledgement_route import (
    AcknowledgedJson,
    AcknowledgeHandler,
    AcknowledgementsIn,
)
from delivery.sessions.events_route import SessionEventsHandler
from delivery.sessions.socket_sessions import SessionServices
from eventhub.access.quotas import SocketsLimited
from eventhub.access.sessions import UnknownSession, WrongSessionKind
from eventhub.base import errors
from eventhub.event.inbound import JSON
from eventhub.http.routes import SESSION, ResponseSpec, Route, query_parameter, unbound

_REFUSES: tuple[type[errors.EventHubError], ...] = (
    errors.InvalidUtf8,
    errors.InvalidField,
    errors.InvalidName,
    errors.FieldTooLong,
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
        path="/v1/sessions/{session}/acknowledgements",
        summary="Acknowledge events of a session",
        description=(
            "Of a consumer session of the own client, served by a connection of any process, or by"
            " none. `session` is its name or its id. All or nothing; answers after the commit, with"
            " the session's positions. Acknowledging an event again has no effect. Acknowledgements"
            " of a best-effort session have none either. A member of a group that shares"
            " acknowledges what it has claimed."
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
    Route(
        method="GET",
        path="/v1/sessions/{session}/events",
        summary="Connect a consumer session, and receive its events",
        description=(
            "Server-sent events without end: the messages that a websocket has for the session, of"
            " all its streams, in its order and within its window. It starts after what is"
            " acknowledged, and replaces the connection before; `Last-Event-ID` has no effect."
            " Acknowledge with the route of acknowledgements. After `disconnected`, or a refusal,"
            " do not connect again by yourself."
        ),
        parameters=(
            query_parameter(
                "access_token", "A connection token, for clients that cannot send headers."
            ),
            SESSION,
        ),
        responses={"200": ResponseSpec("The events.", {SSE.decode(): {"type": "string"}})},
        raises=(
            *_REFUSES,
            errors.UnknownField,
            NotAcceptable,
            own.SessionDisconnected,
            errors.LimitReached,
            errors.TooManyRequests,
            SocketsLimited,
            errors.Overloaded,
        ),
        handler=unbound,
    ),
)


def session_routes(
    services: ListenerServices, sessions: SessionServices, monitor: ReaderMonitor
) -> tuple[Route, ...]:
    """Return the routes of the table with their handlers."""
    acknowledge, events = SESSION_ROUTES
    return (
        acknowledge._replace(handler=AcknowledgeHandler(sessions.delivery)),
        events._replace(handler=SessionEventsHandler(services, sessions, monitor)),
    )
