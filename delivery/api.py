"""Deliveries: what is pending for endpoints, what became of it, and every try."""

import re
from typing import Any

import orjson
from django.db.models import QuerySet

from delivery import selectors
from delivery.errors import UnknownDelivery
from delivery.filtersets import ENDS, DeliveryFilters
from delivery.models import Delivery
from delivery.selectors import DeliveryId, Ended, EndedRow
from delivery.serializers import ENDED, DeliverySerializer, OneDeliverySerializer
from eventhub import errors
from eventhub.access.pagination import Cut, foreign_cursor, read_page
from eventhub.access.resource import ResourceView, operation
from registrations.errors import UnknownEndpoint

_ID = re.compile(r"\.".join([r"([0-9]{1,18})", r"([0-9]{1,9})", *[r"([0-9]{1,18})"] * 2,
                             r"([0-9]{1,9})"]))  # fmt: skip
_NEWEST_FIRST = ("-partition_id", "-segment", "-sequence", "-run")
_BY_ENDPOINT = ("endpoint", "run")


class Deliveries(ResourceView):
    """Deliveries of an endpoint, of an event, or those of all endpoints that have failed."""

    unknown = UnknownDelivery
    lookup_url_kwarg = "delivery"
    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilters
    listed = EndedRow._fields[:-2]
    cursor = ("endpoint", "partition_id", "segment", "sequence", "run")

    @operation(
        "List deliveries of an endpoint, of an event, or failed ones of all endpoints",
        *(errors.MissingField, errors.UnknownStream, UnknownEndpoint),
    )
    def get_queryset(self) -> QuerySet[Delivery] | Cut:
        asked = self.asked
        endpoint, sequence, state = asked["endpoint"], asked["sequence"], asked["state"]
        client, stream = asked["client"], asked["stream"]
        if endpoint is None and sequence is None and state in ENDED:
            page = read_page(self.request)
            ended = Ended(client, stream, state, _after(page.after), page.limit)
            return selectors.list_ended(actor=self.actor, asked=ended)
        if client is not None:
            raise errors.InvalidField(
                f"Name a `client` with a `state` of {ENDS}, and nothing else that says whose.",
                field="client",
            )
        if endpoint is not None and sequence is None:
            self.ordering = _NEWEST_FIRST
            found = selectors.of_endpoint(actor=self.actor, endpoint_id=endpoint, stream=stream)
        elif endpoint is None and stream is not None and sequence is not None:
            self.ordering = _BY_ENDPOINT
            found = selectors.of_event(actor=self.actor, stream=stream, sequence=sequence)
        else:
            raise errors.MissingField(
                f"Name an `endpoint`, an event by `stream` and `sequence`, or a `state` of {ENDS}.",
                field="endpoint",
            )
        return found if state is None else found.filter(state=state)

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset  # which is filtered

    @operation("Show a delivery with its event and its tries", answer=OneDeliverySerializer)
    def get_object(self) -> Delivery:
        name = _id(self.kwargs["delivery"])
        if name is None:
            raise self.not_found()
        found = selectors.find_delivery(actor=self.actor, delivery=name)
        event = selectors.find_event(actor=self.actor, delivery=found)
        found.event = None if event is None else orjson.loads(event)
        found.tries = selectors.tries_of(delivery=found)
        return found


def _id(text: str) -> DeliveryId | None:
    found = _ID.fullmatch(text)
    return None if found is None else DeliveryId(*map(int, found.groups()))


def _after(text: str) -> DeliveryId | None:
    found = _id(text)
    if text and found is None:
        raise foreign_cursor()
    return found
