"""What the views of endpoints and groups share: clients have them, and each change is made under
the lock of its row. Django module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from eventhub.api.conditions import require_unchanged
from eventhub.api.resource import ResourceView
from registrations.filtersets import OfClient
from registrations.models import LIVE
from registrations.owners import Owner, owner, scope
from registrations.permissions import ListensSomewhere


class OwnedView(ResourceView):
    """Views of what is a client's. An actor deals with its own client's, or with those of the whole
    zone; to it there are no others.
    """

    permission_classes = (ListensSomewhere,)
    filterset_class = OfClient

    def get_queryset(self) -> QuerySet:
        client_id = scope(actor=self.actor)
        whose = {} if client_id is None else {"client_id": client_id}
        return super().get_queryset().filter(LIVE, zone_id=self.actor.zone_id, **whose)

    def owner(self, body: dict[str, Any]) -> Owner:
        """Whose a new one is, which is taken from the body."""
        return owner(actor=self.actor, name=body.pop("client", None))

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """Lock the one that the path names to the end of the block, which is a transaction; it is
        read by a statement of its own, after the lock. Raises `unknown`, Changed.
        """
        with transaction.atomic():
            row = self.get_queryset().filter(pk=self.key).select_for_update(of=("self",))
            if not row.values_list("pk"):
                raise self.not_found()
            found = self.get_object()
            require_unchanged(self.resource(found), self.if_match)
            yield found
