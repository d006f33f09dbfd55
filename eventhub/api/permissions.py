"""Permissions of views, for DRF. The OpenAPI document quotes the docstring of each class.
`has_permission` raises Forbidden with the missing grant. `role`: the role that operators need; ""
stands for that of the method (eventhub/access/roles.py). Django module.
"""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from eventhub.access import roles


class AllowAnyone(BasePermission):
    """Needs no credentials."""

    schemes: tuple[str, ...] = ()  # of authentication, as the OpenAPI document names them
    role = roles.VIEWER

    def has_permission(self, request: Request, view: Any) -> bool:
        return True


class IsAuthenticated(BasePermission):
    """Open to every key of the zone."""

    schemes: tuple[str, ...] = ("bearer", "operatorLogin")
    role = ""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Check that the zone exists and that the names in the path are valid; then `require`."""
        self.require(view)
        return True

    def require(self, view: Any) -> None:
        """Raise Forbidden."""
        assert view.actor  # noqa: S101 (raises if the zone does not exist)


class IsZoneManager(IsAuthenticated):
    """Needs the grant `manage:*`."""

    def require(self, view: Any) -> None:
        view.actor.require_zone_manager()


class IsOperator(IsAuthenticated):
    """For operators only."""

    schemes = ("operatorLogin",)

    def require(self, view: Any) -> None:
        view.actor.require_operator()


class IsAdmin(IsOperator):
    """For operators with the role admin."""

    role = roles.ADMIN


class IsLoggedIn(IsOperator):
    """For operators of any role."""

    role = roles.VIEWER


class ReadsSystem(IsAuthenticated):
    """Needs a grant to manage `system`, such as `manage:*`."""

    def require(self, view: Any) -> None:
        view.actor.require_listen("system")


class ManagesStream(IsAuthenticated):
    """Needs a grant to manage the stream."""

    def require(self, view: Any) -> None:
        view.actor.require("manage", view.kwargs["stream"])
