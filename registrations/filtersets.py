"""Filters that lists of registrations, endpoints and groups share. Django module."""

from django.db.models import QuerySet

from eventhub.api.filters import FilterSet, FlagFilter, NameFilter, NumberFilter, TextFilter
from registrations.owners import owner
from registrations.requests import key_of


class OfClient(FilterSet):
    """By whose it is."""

    client = NameFilter(
        method="of_client", help_text="Of this client only; a key sees its own client's."
    )

    def of_client(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        return queryset.filter(client_id=owner(actor=self.actor, name=value).id)


class KeyFilter(TextFilter):
    """A client's own name for a registration."""

    def read(self, text: str) -> str | None:
        return key_of(text)


class RegistrationFilters(OfClient):
    stream = NameFilter(help_text="Those that name this stream.")
    endpoint = NumberFilter(help_text="Those that name this endpoint.")
    group = NameFilter(help_text="Those of the groups of this name.")
    suspended = FlagFilter(help_text="Those that are, or are not, by themselves.")
    key = KeyFilter(help_text="Those of this key.")
