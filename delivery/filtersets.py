"""Filters of the lists of deliveries and listeners. Django module."""

from delivery.serializers import ENDED, STATES
from eventhub.api.filters import (
    FilterSet,
    MomentFilter,
    NameFilter,
    NumberFilter,
    TextFilter,
    WordFilter,
)

ENDS = ", ".join(ENDED)


class DeliveryFilters(FilterSet):
    endpoint = NumberFilter(
        help_text="Only deliveries to this endpoint. Without it, name a `stream`, or a `state` that"
        f" ends a delivery without success ({ENDS}) for all endpoints; a page may then be short,"
        " or empty, and still have a `next`."
    )
    client = NameFilter(help_text="Only deliveries to endpoints of this client.")
    stream = NameFilter(help_text="Only deliveries from this stream.")
    sequence = NumberFilter(help_text="With `stream`: only deliveries of this event.")
    state = WordFilter(STATES, help_text="Only deliveries in this state.")
    since = MomentFilter(help_text="Only deliveries that were written then or later.")
    until = MomentFilter(help_text="Only deliveries that were written then or earlier.")
    outcome = NameFilter(
        help_text="Only deliveries whose last attempt failed so: `timeout`, `status`, …"
    )
    status = NumberFilter(help_text="Only deliveries whose last response had this status.")
    type = NameFilter(help_text="Only deliveries of events of this type, while they are stored.")
    event = TextFilter(help_text="Only deliveries of events with this id, while they are stored.")


class ListenerFilters(FilterSet):
    stream = NameFilter(help_text="Only listeners to this stream.")
