"""The API of deliveries, of a client's listeners, and of a zone's overview. Django module."""

from typing import Any

from django.db.models import QuerySet

from delivery import selectors
from delivery.errors import UnknownDelivery
from delivery.filtersets import ENDS, DeliveryFilters, ListenerFilters
from delivery.models import Delivery, Listener
from delivery.search import search
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

SELECTING = ("since", "until", "outcome", "status", "type", "event")


class Deliveries(ResourceView):
    """Deliveries of an endpoint, of an event or a stream, or failed ones of all endpoints."""

    unknown = UnknownDelivery
    lookup_url_kwarg = "delivery"
    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilters
    listed = selectors.LISTED_FIELDS
    cursor = tuple(field.name for field in KEY_FIELDS)

    @operation(
        "List deliveries of an endpoint, of an event or a stream, or failed ones of all endpoints",
        *(errors.MissingField, errors.UnknownStream, UnknownEndpoint, errors.LimitReached),
    )
    def get_queryset(self) -> QuerySet[Delivery] | PreparedPage:
        asked = self.filter_values
        if asked["sequence"] is not None:
            return self._of_event(asked)
        if asked["endpoint"] is None and asked["stream"] is None and asked["state"] not in ENDED:
            raise errors.MissingField(
                f"Name an `endpoint`, a `stream`, or a `state` of {ENDS}.", field="endpoint"
            )
        return search(actor=self.actor, filters=asked, page=read_page(self.request))

    def _of_event(self, asked: dict[str, Any]) -> QuerySet[Delivery]:
        """Return the deliveries of one event."""
        if asked["stream"] is None:
            raise errors.MissingField("A `sequence` needs its `stream`.", field="stream")
        for name in ("client", *SELECTING):
            if asked[name] is not None:
                raise errors.InvalidField("This does not select among one event's.", field=name)
        self.ordering = ("endpoint",)
        found = selectors.of_event(
            actor=self.actor, stream=asked["stream"], sequence=asked["sequence"]
        )
        exact = {"endpoint_id": asked["endpoint"], "state": asked["state"]}
        return found.filter(**{name: value for name, value in exact.items() if value is not None})

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
