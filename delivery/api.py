"""The API of deliveries, of a client's listeners, and of a zone's overview. Django module."""

from typing import Any

from django.db.models import QuerySet

from delivery import selectors
from delivery.errors import UnknownDelivery
from delivery.filtersets import ENDS, DeliveryFilters, ListenerFilters
from delivery.models import Delivery, Listener
from delivery.selectors import KEY_FIELDS
from delivery.serializers import (
    ENDED,
    DeliverySerializer,
    ListenerSerializer,
    OneDeliverySerializer,
    OverviewSerializer,
)
from eventhub.api.pagination import PreparedPage, read_page, values_of
from eventhub.api.permissions import IsZoneManager
from eventhub.api.resource import ResourceView, operation
from eventhub.base import errors
from registrations.errors import UnknownEndpoint


class Deliveries(ResourceView):
    """Deliveries of an endpoint or of an event, or failed deliveries of all endpoints."""

    unknown = UnknownDelivery
    lookup_url_kwarg = "delivery"
    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilters
    listed = selectors.LISTED_FIELDS
    cursor = tuple(field.name for field in KEY_FIELDS)

    @operation(
        "List deliveries of an endpoint, of an event, or failed ones of all endpoints",
        *(errors.MissingField, errors.UnknownStream, UnknownEndpoint),
    )
    def get_queryset(self) -> QuerySet[Delivery] | PreparedPage:
        asked = self.filter_values
        endpoint, sequence, state = asked["endpoint"], asked["sequence"], asked["state"]
        stream = asked["stream"]
        if endpoint is None and sequence is None and state in ENDED:
            page = read_page(self.request)
            return selectors.list_ended(actor=self.actor, filters=asked, page=page)
        if asked["client"] is not None:
            raise errors.InvalidField(
                f"`client` needs a `state` of {ENDS}, without `endpoint` and `sequence`.",
                field="client",
            )
        if endpoint is not None and sequence is None:
            self.ordering = ("-partition_id", "-segment", "-sequence")
            found = selectors.of_endpoint(actor=self.actor, endpoint_id=endpoint, stream=stream)
        elif endpoint is None and stream is not None and sequence is not None:
            self.ordering = ("endpoint",)
            found = selectors.of_event(actor=self.actor, stream=stream, sequence=sequence)
        else:
            raise errors.MissingField(
                f"Name an `endpoint`, an event by `stream` and `sequence`, or a `state` of {ENDS}.",
                field="endpoint",
            )
        return found if state is None else found.filter(state=state)

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset  # already filtered

    @operation("Show a delivery with its event and its attempts", response=OneDeliverySerializer)
    def get_object(self) -> Delivery:
        try:
            key = values_of(self.kwargs["delivery"], KEY_FIELDS)
        except errors.InvalidField:
            raise self.not_found() from None
        return selectors.find_delivery(actor=self.actor, key=key)


class ClientListeners(ResourceView):
    """The listeners of a client."""

    queryset = Listener.objects.all()
    serializer_class = ListenerSerializer
    filterset_class = ListenerFilters
    ordering = ("-started_at", "-id")

    @operation("List the listeners of a client", errors.UnknownStream)
    def get_queryset(self) -> QuerySet[Listener]:
        client, stream = self.kwargs["client"], self.filter_values["stream"]
        return selectors.listeners_of(actor=self.actor, client=client, stream=stream)

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset  # already filtered


class ZoneOverview(ResourceView):
    """The overview of a zone, read at a bounded cost."""

    permission_classes = (IsZoneManager,)
    serializer_class = OverviewSerializer

    @operation("Show a zone's overview")
    def get_object(self) -> dict[str, Any]:
        return selectors.overview(zone_id=self.actor.zone_id)
