"""Query parameters of the list of connectors. Django module."""

from eventhub.api.filters import FlagFilter, NameFilter, WordFilter
from registrations.connectors.kinds.registry import KINDS
from registrations.connectors.selectors import STATES
from registrations.filtersets import OwnedFilterSet


class ConnectorFilters(OwnedFilterSet):
    stream = NameFilter(field_name="stream__name", help_text="Only those of this stream.")
    name = NameFilter(help_text="Only those with this name.")
    kind = WordFilter([*KINDS], help_text="Only those of this kind.")
    state = WordFilter([*STATES], help_text="Only those in this state.")
    enabled = FlagFilter(help_text="Only those that are, or are not, enabled.")
