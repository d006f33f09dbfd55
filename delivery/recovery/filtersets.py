"""Filters of the lists of replay runs and dead letters. Django module."""

from delivery.models import ReplayRun
from delivery.serializers import ENDED
from eventhub.api.filters import FilterSet, NameFilter, NumberFilter, WordFilter


class ReplayFilters(FilterSet):
    endpoint = NumberFilter(help_text="Only runs into this endpoint.")
    state = WordFilter(tuple(ReplayRun.State.values), help_text="Only runs in this state.")


class DeadLetterFilters(FilterSet):
    endpoint = NumberFilter(help_text="Only dead letters of this endpoint.")
    client = NameFilter(help_text="Only those of endpoints of this client.")
    stream = NameFilter(help_text="Only those of events of this stream.")
    state = WordFilter(
        ENDED, help_text="Deliveries that ended in this state; by default `dead_lettered`."
    )
