"""Filters that lists of registrations, endpoints and groups share."""

from django.db.models import QuerySet

from eventhub.access.filters import FilterSet, NameFilter
from registrations.owners import owner


class OfClient(FilterSet):
    """By whose it is."""

    client = NameFilter(
        method="of_client", help_text="Of this client only; a key sees its own client's."
    )

    def of_client(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        return queryset.filter(client_id=owner(actor=self.actor, name=value).id)
