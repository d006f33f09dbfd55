"""Permissions of the views of endpoints and groups. Django module."""

from typing import Any

from eventhub.api.permissions import IsAuthenticated
from registrations.scope import require_some_listen


class HasListenGrant(IsAuthenticated):
    """Requires a grant to listen to at least one stream."""

    def require(self, view: Any) -> None:
        require_some_listen(actor=view.actor)
