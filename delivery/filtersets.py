"""Filters of the lists of deliveries and listeners. Django module."""

from delivery.serializers import ENDED, STATES
from eventhub.api.filters import FilterSet, NameFilter, NumberFilter, WordFilter

ENDS = ", ".join(ENDED)


class DeliveryFilters(FilterSet):
    endpoint = NumberFilter(
        help_text="Only deliveries to this endpoint. Without it, name an event, or a `state` that"
        f" ends a delivery without success ({ENDS}) for all endpoints; a page may then be short,"
        " or empty, and still have a `next`."
    )
    client = NameFilter(
        help_text="Only deliveries to endpoints of this client; without `endpoint`."
    )
    stream = NameFilter(help_text="Only deliveries from this stream.")
    sequence = NumberFilter(help_text="With `stream`: only deliveries of this event.")
    state = WordFilter(STATES, help_text="Only deliveries in this state.")


class ListenerFilters(FilterSet):
    stream = NameFilter(help_text="Only listeners to this stream.")
