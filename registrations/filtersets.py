"""Query parameters of the lists of registrations, endpoints and groups. Django module."""

from django.db.models import QuerySet

from eventhub.api.filters import FilterSet, FlagFilter, NameFilter, NumberFilter, TextFilter
from registrations.requests import key_of
from registrations.scope import owner


class OwnedFilterSet(FilterSet):
    """The query parameter `client`."""

    client = NameFilter(
        method="filter_client",
        help_text="Only those of this client. A key sees only its own client's.",
    )

    def filter_client(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        return queryset.filter(client_id=owner(actor=self.actor, name=value).id)


class KeyFilter(TextFilter):
    """The client's own name for a registration."""

    def read(self, text: str) -> str | None:
        return key_of(text)


class RegistrationFilters(OwnedFilterSet):
    stream = NameFilter(help_text="Only those that name this stream.")
    endpoint = NumberFilter(help_text="Only those that name this endpoint.")
    group = NameFilter(help_text="Only those in a group with this name.")
    session = NameFilter(help_text="Only those of sessions with this name.")
    session_group = NameFilter(help_text="Only those of this session group.")
    suspended = FlagFilter(
        help_text="Only those that are, or are not, suspended themselves (not with their group)."
    )
    key = KeyFilter(help_text="Only the one with this key.")
