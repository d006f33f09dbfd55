"""The specification of the route of webhooks; it drives dispatch and OpenAPI. Plain module."""

from eventhub.access.quotas import RateLimited, ZoneStorageFull
from eventhub.base import errors
from eventhub.base.clock import SystemClock
from eventhub.event.errors import ImmutableProperty
from eventhub.eventlog.errors import StorageFull, StreamDeleting, TransientUnavailable
from eventhub.http.routes import ResponseSpec, Route, unbound
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType
from registrations.endpoints.secrets import Keyring
from registrations.sources import errors as own
from registrations.sources.receive import SourceReceiver

_ANY = {"type": "string", "format": "binary"}

SOURCE_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/webhooks/{token}",
        summary="Receive a webhook of a provider",
        description=(
            "The secret URL of a source. The request is verified as its provider signs, mapped, and"
            " emitted with its raw body; one that was stored before is not stored again. Challenges"
            " are answered in the provider's form. Every query parameter is accepted."
        ),
        body={"application/json": _ANY, "application/x-www-form-urlencoded": _ANY},
        responses={
            "200": ResponseSpec(
                "Stored, stored before, or answered: in the provider's form.",
                {
                    "application/json": {"type": "object"},
                    "text/plain": {"type": "string"},
                    "text/xml": {"type": "string"},
                },
            )
        },
        raises=(
            *(own.UnknownSource, own.SourceDisabled, own.UnverifiedDelivery),
            own.UnmappedDelivery,
            *(errors.MalformedJson, errors.InvalidUtf8, errors.TooDeep, errors.InvalidField),
            *(errors.MissingField, errors.FieldTooLong, errors.NumberOutOfRange),
            *(errors.BodyTooLarge, errors.EventTooLarge, errors.RequestTimeout),
            *(errors.UnsupportedMediaType, errors.UnknownStream, StreamDeleting),
            *(TypeViolation, TypeTooCostly, UndeclaredType, ImmutableProperty),
            *(RateLimited, errors.TooManyRequests, ZoneStorageFull, StorageFull),
            *(errors.Overloaded, errors.OutcomeUnknown, errors.DatabaseUnavailable),
            *(errors.DatabaseBusy, TransientUnavailable),
        ),
        handler=unbound,
    ),
)


def source_routes(keyring: Keyring) -> tuple[Route, ...]:
    """Return the route of the table with its handler."""
    [webhook] = SOURCE_ROUTES
    return (webhook._replace(handler=SourceReceiver(keyring, SystemClock())),)
