"""The record of listens."""

from typing import Any

from django.db.models import QuerySet

from delivery.filtersets import ListenFilters
from delivery.listens.selectors import listens_of
from delivery.listens.serializers import ListenSerializer
from delivery.models import Listen
from eventhub import errors
from eventhub.access.resource import ResourceView, operation


class ClientListens(ResourceView):
    """When a client listened, from where, and how far it was told."""

    queryset = Listen.objects.all()
    serializer_class = ListenSerializer
    filterset_class = ListenFilters
    ordering = ("-started_at", "-id")

    @operation("List when a client listened, and how far it was told", errors.UnknownStream)
    def get_queryset(self) -> QuerySet[Listen]:
        client, stream = self.kwargs["client"], self.asked["stream"]
        return listens_of(actor=self.actor, client=client, stream=stream)

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset  # which is filtered
