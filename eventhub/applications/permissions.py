"""Permissions of the views of applications: the grants are those on the stream of their states.
Django module.
"""

from typing import Any

from eventhub.access.grants import APPLICATIONS
from eventhub.api.permissions import IsAuthenticated


class ReadsApplications(IsAuthenticated):
    """Needs the grant `listen:eventhub.applications`."""

    def require(self, view: Any) -> None:
        view.actor.require("listen", APPLICATIONS)


class ReportsApplications(IsAuthenticated):
    """Needs the grant `emit:eventhub.applications`."""

    def require(self, view: Any) -> None:
        view.actor.require("emit", APPLICATIONS)


class ManagesApplications(IsAuthenticated):
    """Needs the grant `manage:eventhub.applications`."""

    def require(self, view: Any) -> None:
        view.actor.require("manage", APPLICATIONS)
