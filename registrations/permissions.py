"""Who may look at where events go. Django module."""

from typing import Any

from eventhub.api.permissions import IsAuthenticated
from registrations.owners import require_some_listen


class ListensSomewhere(IsAuthenticated):
    """Needs a grant to listen to some stream."""

    def require(self, view: Any) -> None:
        require_some_listen(actor=view.actor)
