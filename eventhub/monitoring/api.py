"""Views of the hub's members, and of what of a zone becomes an event. Django module."""

from typing import Any

from django.db.models import QuerySet

from eventhub.access import selectors
from eventhub.access.models import Zone
from eventhub.api.pagination import WholeList
from eventhub.api.permissions import IsOperator, IsZoneManager
from eventhub.api.resource import ResourceView, operation
from eventhub.eventlog.errors import ZoneDeleting
from eventhub.monitoring import serializers, services
from eventhub.monitoring.models import Member


class Members(ResourceView):
    """The processes of the hub."""

    noun = "a member", "the processes of the hub: web processes, forwarders and workers"
    permission_classes = (IsOperator,)
    queryset = Member.objects.all()
    serializer_class = serializers.MemberSerializer
    pagination_class = WholeList

    def get_queryset(self) -> QuerySet[Member]:
        return Member.objects.filter(left_at=None).order_by("kind", "node", "started_at", "id")


class ZoneMonitoring(ResourceView):
    """What of a zone becomes an event."""

    permission_classes = (IsZoneManager,)
    queryset = Zone.objects.all()
    serializer_class = serializers.MonitoringSerializer

    @operation("Show what of the zone becomes an event")
    def get_object(self) -> Zone:
        return selectors.list_zones().get(pk=self.actor.zone_id)

    @operation(
        "Switch events about clients and API calls on or off",
        ZoneDeleting,
        body=serializers.MonitoringChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Zone:
        return services.change_monitoring(actor=self.actor, **body)
