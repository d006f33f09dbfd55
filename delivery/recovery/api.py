"""The API of single deliveries that are sent again, and of dead letters. Django module."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from delivery.errors import DeliveryInProgress, DeliveryState, UnknownDelivery
from delivery.models import Delivery
from delivery.recovery import dead_letters, examples, services
from delivery.recovery.actions import DISCARD, SKIP
from delivery.recovery.examples import ExampleRequest
from delivery.recovery.filtersets import DeadLetterFilters
from delivery.recovery.serializers import (
    DeadLetterGroupSerializer,
    ExampleRequestSerializer,
    ResendSerializer,
)
from delivery.recovery.services import ResendOptions
from delivery.selectors import KEY_FIELDS
from delivery.serializers import DeliverySerializer
from eventhub.api.pagination import PreparedPage, read_page, values_of
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.types.errors import TypeViolation
from registrations.errors import UnknownEndpoint
from registrations.models import Endpoint
from registrations.resource import OwnedView

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


class EndpointExamples(OwnedView):
    """Examples that are sent to an endpoint."""

    unknown = UnknownEndpoint
    lookup_url_kwarg = "endpoint"
    queryset = Endpoint.objects.select_related("client")
    serializer_class = DeliverySerializer
    endpoint: Endpoint

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Send an example; an unknown endpoint is refused before the body is read."""
        self.endpoint = self.get_object()
        return super().create(request, **kwargs)

    @operation(
        "Send an example of a type to an endpoint; the delivery shows the result",
        TypeViolation,
        body=ExampleRequestSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Delivery:
        return examples.send_example(
            actor=self.actor, endpoint=self.endpoint, request=ExampleRequest(**body)
        )


class DeadLetters(ResourceView):
    """Deliveries without success, by endpoint and cause."""

    queryset = Delivery.objects.all()
    serializer_class = DeadLetterGroupSerializer
    filterset_class = DeadLetterFilters

    @operation(
        "List dead letters of all endpoints, grouped by endpoint and cause", errors.UnknownStream
    )
    def get_queryset(self) -> PreparedPage:
        page = read_page(self.request)
        return dead_letters.list_groups(actor=self.actor, filters=self.filter_values, page=page)
