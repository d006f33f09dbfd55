"""The API of sending deliveries again. Django module."""

from typing import Any

from delivery.errors import DeliveryInProgress, DeliveryState, UnknownDelivery
from delivery.models import Delivery
from delivery.recovery import services
from delivery.recovery.actions import DISCARD, SKIP
from delivery.recovery.serializers import ResendSerializer
from delivery.recovery.services import ResendOptions
from delivery.selectors import KEY_FIELDS
from delivery.serializers import DeliverySerializer
from eventhub.api.pagination import values_of
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from registrations.errors import UnknownEndpoint

_REFUSALS = (DeliveryInProgress, DeliveryState)


class _DeliveryAction(ResourceView):
    """An action on one delivery."""

    unknown = UnknownDelivery
    lookup_url_kwarg = "delivery"
    serializer_class = DeliverySerializer

    @property
    def key(self) -> tuple[int, ...]:
        """The key of the delivery in the path. Raises UnknownDelivery if it is none."""
        try:
            return values_of(self.kwargs["delivery"], KEY_FIELDS)
        except errors.InvalidField:
            raise self.not_found() from None


class DeliveryResend(_DeliveryAction):
    """Sends a delivery again."""

    @operation(
        "Send a delivery again, with the same webhook-id",
        *(*_REFUSALS, UnknownEndpoint, errors.Gone, ArchiveDamaged, ArchiveUnavailable),
        body=ResendSerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> Delivery:
        return services.resend(actor=self.actor, key=self.key, options=ResendOptions(**body))


class DeliverySkip(_DeliveryAction):
    """Skips a pending delivery."""

    @operation(
        "Skip a pending delivery; an ordered lane goes on with the next one",
        *_REFUSALS,
        body=EmptySerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> Delivery:
        return services.discard(actor=self.actor, key=self.key, action=SKIP)


class DeliveryDiscard(_DeliveryAction):
    """Discards a failed delivery."""

    @operation(
        "Discard a failed delivery, which is then no longer listed as failed",
        *_REFUSALS,
        body=EmptySerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> Delivery:
        return services.discard(actor=self.actor, key=self.key, action=DISCARD)
