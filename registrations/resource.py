"""The base of the views of endpoints and groups: clients own them, and a change locks the row.
Django module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from eventhub.api.if_match import require_unchanged
from eventhub.api.resource import ResourceView
from registrations.filtersets import OwnedFilterSet
from registrations.models import LIVE
from registrations.permissions import HasListenGrant
from registrations.scope import Owner, owner, scope


class OwnedView(ResourceView):
    """A view of resources that belong to clients. An actor sees those of its own client, or of the
    whole zone; others do not exist for it.
    """

    permission_classes = (HasListenGrant,)
    filterset_class = OwnedFilterSet

    def get_queryset(self) -> QuerySet:
        return self.visible(super().get_queryset())

    def visible(self, queryset: QuerySet) -> QuerySet:
        """Return the live rows of the queryset that exist for the actor."""
        client_id = scope(actor=self.actor)
        of_client = {} if client_id is None else {"client_id": client_id}
        return queryset.filter(LIVE, zone_id=self.actor.zone_id, **of_client)

    def owner(self, body: dict[str, Any]) -> Owner:
        """Remove the `client` of a new resource from the body and return that client."""
        return owner(actor=self.actor, name=body.pop("client", None))

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """Lock the row that the path names until the end of the block, which is a transaction, and
        yield it as read by a second statement, after the lock. Raises `unknown`, Changed.
        """
        with transaction.atomic():
            named = {self.lookup_field: self.key}
            row = self.get_queryset().filter(**named).select_for_update(of=("self",))
            if not row.values_list("pk"):
                raise self.not_found()
            found = self.get_object()
            require_unchanged(self.resource(found), self.if_match)
            yield found
