"""Query parameters of the lists of sources and samples. Django module."""

from eventhub.api.filters import FilterSet, FlagFilter, NameFilter, WordFilter
from registrations.filtersets import OwnedFilterSet
from registrations.sources.providers.registry import PROVIDERS


class SourceFilters(OwnedFilterSet):
    stream = NameFilter(field_name="stream__name", help_text="Only those of this stream.")
    name = NameFilter(help_text="Only those with this name.")
    provider = WordFilter([*PROVIDERS], help_text="Only those of this provider.")
    enabled = FlagFilter(help_text="Only those that are, or are not, enabled.")


class SampleFilters(FilterSet):
    verified = FlagFilter(help_text="Only requests that were, or were not, verified.")
