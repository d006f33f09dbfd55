"""Permissions of the views of endpoints and groups. Django module."""

from typing import Any

from eventhub.api.permissions import IsKnown
from registrations.owners import require_some_listen


class HasListenGrant(IsKnown):
    """Requires a grant to listen to at least one stream."""

    def require(self, view: Any) -> None:
        require_some_listen(actor=view.actor)
