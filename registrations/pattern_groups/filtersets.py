"""Query parameters of the lists of pattern groups and patterns. Django module."""

from eventhub.api.filters import NameFilter, WordFilter
from registrations.filtersets import OwnedFilterSet
from registrations.pattern_groups.definition import LANGUAGES
from registrations.pattern_groups.selectors import STATES


class PatternGroupFilters(OwnedFilterSet):
    name = NameFilter(help_text="Only those with this name.")


class PatternFilters(OwnedFilterSet):
    group = NameFilter(field_name="group__name", help_text="Only those of groups with this name.")
    name = NameFilter(help_text="Only those with this name.")
    language = WordFilter(LANGUAGES, help_text="Only those in this language.")
    status = WordFilter([*STATES], field_name="state", help_text="Only those in this state.")
