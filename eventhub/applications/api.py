"""Views of applications, their heartbeats and monitoring, and of their groups. Django module."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access.names import valid_name
from eventhub.access.quotas import RateLimited, ZoneStorageFull
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.applications import selectors, services
from eventhub.applications.errors import UnknownApplication, UnknownApplicationGroup
from eventhub.applications.filtersets import ApplicationFilters
from eventhub.applications.models import Application, ApplicationGroup
from eventhub.applications.names import valid_application
from eventhub.applications.permissions import (
    ManagesApplications,
    ReadsApplications,
    ReportsApplications,
)
from eventhub.applications.serializers import (
    ApplicationGroupSerializer,
    ApplicationSerializer,
    MonitorSerializer,
    NewApplicationGroupSerializer,
    ReportSerializer,
)
from eventhub.base import errors
from eventhub.eventlog.errors import StreamDeleting, ZoneDeleting

_EMITS = (RateLimited, ZoneStorageFull, StreamDeleting)
_CREATES = (errors.LimitReached, ZoneDeleting, StreamDeleting)


class Applications(ResourceView):
    """Applications and their components, in the order of their creation."""

    noun = "an application", "applications"
    unknown = UnknownApplication
    lookup_field = "name"
    lookup_url_kwarg = "application"
    permission_classes = (ReadsApplications,)
    filterset_class = ApplicationFilters
    queryset = Application.objects.all()
    serializer_class = ApplicationSerializer

    @property
    def key(self) -> str:
        """The name in the path. Raises FieldTooLong, InvalidName."""
        return valid_application(self.kwargs["application"], field="application")

    def get_queryset(self) -> QuerySet[Application]:
        selectors.reply_about_states(zone_id=self.actor.zone_id)
        return selectors.applications_of(zone_id=self.actor.zone_id)

    @operation(
        "Report the state of an application; it is created if there is none",
        *(*_CREATES, *_EMITS),
        body=ReportSerializer,
        response={200: ApplicationSerializer, 201: ApplicationSerializer},
        permissions=(ReportsApplications,),
    )
    def update(self, request: Request, **kwargs: Any) -> Response:
        name = self.key
        found, new = services.report(actor=self.actor, name=name, **self.body())
        return self.answer(found, 201 if new else 200, ApplicationSerializer)

    @operation("Delete an application", StreamDeleting, permissions=(ManagesApplications,))
    def perform_destroy(self) -> None:
        services.delete(actor=self.actor, name=self.key)


class Heartbeat(Applications):
    """The heartbeat of an application."""

    @operation(
        "Send a heartbeat of an application",
        *_EMITS,
        body=EmptySerializer,
        permissions=(ReportsApplications,),
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> Application:
        return services.heartbeat(actor=self.actor, name=self.key)


class Monitoring(Applications):
    """The monitoring of an application's heartbeats."""

    @operation(
        "Monitor the heartbeats of an application; again, it changes the time-out",
        StreamDeleting,
        body=MonitorSerializer,
        permissions=(ManagesApplications,),
    )
    def update(self, request: Request, **kwargs: Any) -> Response:
        name = self.key
        return self.answer(services.monitor(actor=self.actor, name=name, **self.body()))

    @operation(
        "Stop monitoring the heartbeats of an application",
        StreamDeleting,
        permissions=(ManagesApplications,),
    )
    def perform_destroy(self) -> None:
        services.monitor(actor=self.actor, name=self.key, timeout_s=None)


class ApplicationGroups(ResourceView):
    """Groups of applications, in the order of their creation."""

    noun = "a group of applications", "groups of applications"
    unknown = UnknownApplicationGroup
    lookup_field = "name"
    lookup_url_kwarg = "application_group"
    permission_classes = (ReadsApplications,)
    queryset = ApplicationGroup.objects.all()
    serializer_class = ApplicationGroupSerializer

    @property
    def key(self) -> str:
        """The name in the path. Raises FieldTooLong, InvalidName."""
        return valid_name(self.kwargs["application_group"], field="application_group")

    def get_queryset(self) -> QuerySet[ApplicationGroup]:
        selectors.reply_about_states(zone_id=self.actor.zone_id)
        return selectors.groups_of(zone_id=self.actor.zone_id)

    @operation(
        "Set the members of a group of applications; it is created if there is none",
        *(*_CREATES, UnknownApplication),
        body=NewApplicationGroupSerializer,
        response={200: ApplicationGroupSerializer, 201: ApplicationGroupSerializer},
        permissions=(ManagesApplications,),
    )
    def update(self, request: Request, **kwargs: Any) -> Response:
        name = self.key
        found, new = services.put_group(actor=self.actor, name=name, **self.body())
        return self.answer(found, 201 if new else 200, ApplicationGroupSerializer)

    @operation(
        "Delete a group of applications; its members remain",
        StreamDeleting,
        permissions=(ManagesApplications,),
    )
    def perform_destroy(self) -> None:
        services.delete_group(actor=self.actor, name=self.key)
