"""Query parameters of the list of timers. Django module."""

from eventhub.api.filters import FlagFilter, NameFilter, NumberFilter
from registrations.filtersets import OwnedFilterSet


class TimerFilters(OwnedFilterSet):
    stream = NameFilter(field_name="stream__name", help_text="Only those on this stream.")
    registration = NumberFilter(
        field_name="registration_id", help_text="Only those of this registration."
    )
    handle = NameFilter(help_text="Only those with this handle.")
    delayed = FlagFilter(
        field_name="handle",
        lookup_expr="isnull",
        help_text="Only delayed events, which have no handle, or only other timers.",
    )
    suspended = FlagFilter(help_text="Only those that are, or are not, suspended.")
