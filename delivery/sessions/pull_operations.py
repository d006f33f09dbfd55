"""The specification of the route of pulls; it drives dispatch and OpenAPI. Plain module."""

from delivery.listening.errors import NotAcceptable
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.sessions import errors as own
from delivery.sessions.pull_request import PullIn
from delivery.sessions.pull_route import MEDIA_TYPES, PullHandler, PullJson
from delivery.sessions.pull_sources import PullSources
from eventhub.access.quotas import SocketsLimited
from eventhub.access.sessions import UnknownSession, WrongSessionKind
from eventhub.base import errors
from eventhub.event.inbound import JSON
from eventhub.http.routes import ResponseSpec, Route, unbound

PULL_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/sessions/{session}/pull",
        summary="Pull the next events of a consumer session",
        description=(
            "Returns up to `max` events of all streams of the session, in its order, at the first"
            " one or empty after `wait_s`. Nobody else gets them for `visibility_s`; what is not"
            " acknowledged by then is handed out again, with the next `attempt`, in any process."
            " `acknowledgements` and `visibility` of earlier events are stored first; with"
            " `visibility_s` 0 there, events are given back."
        ),
        body={JSON: PullIn},
        responses={
            "200": ResponseSpec(
                "The events, each for a time.",
                {
                    media.decode(): PullJson if media == MEDIA_TYPES[0] else {"type": "string"}
                    for media in MEDIA_TYPES
                },
            )
        },
        raises=(
            *(errors.MalformedJson, errors.InvalidUtf8, errors.TooDeep, errors.InvalidField),
            *(errors.UnknownField, errors.MissingField, errors.FieldTooLong, errors.InvalidName),
            *(errors.NumberOutOfRange, errors.Unauthenticated, errors.InvalidCredentials),
            *(errors.TokenExpired, errors.Forbidden, UnknownSession, WrongSessionKind),
            own.StreamOfNoRegistration,
            *(errors.RequestTimeout, NotAcceptable, own.SessionDisconnected),
            *(own.SessionNotReliable, own.SessionReplaced, errors.LimitReached),
            *(errors.BodyTooLarge, errors.UnsupportedMediaType, errors.TooManyRequests),
            *(SocketsLimited, errors.DatabaseUnavailable, errors.DatabaseBusy, errors.Overloaded),
        ),
        handler=unbound,
    ),
)


def pull_routes(sources: PullSources, monitor: ReaderMonitor) -> tuple[Route, ...]:
    """Return the routes of the table with their handlers."""
    [pull] = PULL_ROUTES
    return (pull._replace(handler=PullHandler(sources, monitor)),)
