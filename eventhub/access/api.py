"""Zones, clients and channels."""

from functools import partial
from typing import Any

from django.db.models import QuerySet

from eventhub import errors
from eventhub.access import selectors, services
from eventhub.access.models import Channel, Client, Zone
from eventhub.access.pagination import WholeList
from eventhub.access.permissions import IsOperator, IsZoneManager
from eventhub.access.resource import ResourceView, operation
from eventhub.access.serializers import (
    ChannelMaskSerializer,
    ChannelSerializer,
    ClientChangeSerializer,
    ClientSerializer,
    NewClientSerializer,
    NewZoneSerializer,
    ZoneSerializer,
)


class Zones(ResourceView):
    """Zones are the operators' matter."""

    noun = "a zone", "zones"
    permission_classes = (IsOperator,)
    queryset = Zone.objects.all()
    serializer_class = ZoneSerializer
    ordering = ("name",)

    @operation("Create a zone", errors.Conflict, body=NewZoneSerializer)
    def perform_create(self, body: dict[str, Any]) -> Zone:
        return services.create_zone(**body)


class Clients(ResourceView):
    """The clients of a zone."""

    noun = "a client", "clients"
    kind = "client"
    unknown = partial(errors.NotFound, selectors.NO_CLIENT)
    lookup_field = "name"
    lookup_url_kwarg = "client"
    permission_classes = (IsZoneManager,)
    queryset = Client.objects.all()
    serializer_class = ClientSerializer
    ordering = ("name",)

    def get_queryset(self) -> QuerySet[Client]:
        return selectors.live_clients(zone_id=self.actor.zone_id)

    @operation("Create a client", errors.Conflict, errors.LimitReached, body=NewClientSerializer)
    def perform_create(self, body: dict[str, Any]) -> Client:
        return services.create_client(zone_id=self.actor.zone_id, **body)

    @operation("Change the groups of a client", body=ClientChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> Client:
        groups = body.get("groups")
        return services.change_client(
            zone_id=self.actor.zone_id, name=self.key, groups=groups, if_match=self.if_match
        )

    @operation("Delete a client; its keys, registrations and endpoints end with it")
    def perform_destroy(self) -> None:
        services.delete_client(zone_id=self.actor.zone_id, name=self.key, if_match=self.if_match)


class Channels(ResourceView):
    """The channel names of a zone; whoever has a key may read them."""

    noun = "a channel", "channels"
    kind = "channel"
    lookup_field = "name"
    lookup_url_kwarg = "channel"
    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    pagination_class = WholeList

    def get_queryset(self) -> list[Channel]:
        default = Channel(name=services.DEFAULT_CHANNEL, bit=63)
        return [*selectors.list_channels(zone_id=self.actor.zone_id), default]

    @operation(
        "Define a channel",
        errors.ChannelConflict,
        body=ChannelMaskSerializer,
        permissions=(IsZoneManager,),
    )
    def perform_update(self, body: dict[str, Any]) -> tuple[Channel, bool]:
        return services.define_channel(
            zone_id=self.actor.zone_id, name=self.key, bit=body["mask"], if_match=self.if_match
        )
