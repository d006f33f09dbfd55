"""Query parameters of the list of applications. Django module."""

from eventhub.api.filters import FilterSet, WordFilter
from eventhub.applications.models import State


class ApplicationFilters(FilterSet):
    state = WordFilter(State.values, help_text="Only those in this state.")
