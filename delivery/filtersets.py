"""Filters of the lists of deliveries and listeners. Django module."""

from delivery.serializers import ENDED, STATES
from eventhub.api.filters import FilterSet, NameFilter, NumberFilter, WordFilter

ENDS = ", ".join(ENDED)


class DeliveryFilters(FilterSet):
    endpoint = NumberFilter(
        help_text="Of this endpoint. Without it, name an event, or a `state` that is an end"
        f" without delivery ({ENDS}) for those of all endpoints: then a page may be short, or"
        " empty, with a `next`."
    )
    client = NameFilter(help_text="Of all endpoints of this client, without `endpoint`.")
    stream = NameFilter(help_text="Of this stream.")
    sequence = NumberFilter(help_text="With `stream`: of this event.")
    state = WordFilter(STATES, help_text="In this state.")


class ListenerFilters(FilterSet):
    stream = NameFilter(help_text="Only listeners to this stream.")
