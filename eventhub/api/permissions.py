"""Who may use a view, as DRF asks it: each class says in its docstring whom it lets in, and the
OpenAPI document repeats that. `has_permission` raises Forbidden with the grant that is missing.
Django module.
"""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request


class IsAnybody(BasePermission):
    """For everybody, logged in or not."""

    schemes: tuple[str, ...] = ()  # of authentication, as the OpenAPI document names them

    def has_permission(self, request: Request, view: Any) -> bool:
        return True


class IsKnown(BasePermission):
    """For every key of the zone."""

    schemes: tuple[str, ...] = ("bearer", "operatorLogin")

    def has_permission(self, request: Request, view: Any) -> bool:
        """That the zone is there and the names in the path are names is asked here, first."""
        self.require(view)
        return True

    def require(self, view: Any) -> None:
        """Raise Forbidden."""
        assert view.actor  # noqa: S101 (which raises if the zone is not there)


class IsZoneManager(IsKnown):
    """Needs the grant `manage:*`."""

    def require(self, view: Any) -> None:
        view.actor.require_zone_manager()


class IsOperator(IsKnown):
    """For operators only."""

    schemes = ("operatorLogin",)

    def require(self, view: Any) -> None:
        view.actor.require_operator()


class ManagesStream(IsKnown):
    """Needs a grant to manage the stream."""

    def require(self, view: Any) -> None:
        view.actor.require("manage", view.kwargs["stream"])
