"""Doors to zones, clients and channels."""

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access import selectors, services
from eventhub.access.conditions import condition_of_put, if_match, tagged, with_changes
from eventhub.access.names import valid_name
from eventhub.access.schema import CHANGE, PAGE, PUT, ZONE, Operation, documented, page_of
from eventhub.access.serializers import (
    ChannelMaskSerializer,
    ChannelSerializer,
    ClientChangeSerializer,
    ClientSerializer,
    NewClientSerializer,
    NewNameSerializer,
    ZoneSerializer,
    channel_json,
    client_json,
)
from eventhub.access.view import ManagementView, actor_of, cut_page, read_body, read_page
from eventhub.eventlog.errors import Changed

PAGED = (errors.InvalidField, errors.InvalidName, errors.FieldTooLong)
NAMED = (errors.InvalidName, errors.FieldTooLong, errors.NotFound)


class Zones(ManagementView):
    """Zones are the operators' matter."""

    queries = frozenset({"after", "limit"})

    @documented(Operation("List zones", {200: page_of(ZoneSerializer)}, PAGED, parameters=PAGE))
    def get(self, request: Request) -> Response:
        actor_of(request).require_operator()
        page = read_page(request)
        zones = selectors.list_zones(after=page.after, count=page.limit + 1)
        items, after = cut_page(zones, page.limit, lambda zone: zone.name)
        return Response({"items": [{"name": zone.name} for zone in items], "next": after})

    @documented(
        Operation(
            "Create a zone",
            {201: ZoneSerializer},
            (*PAGED, errors.MissingField, errors.Conflict),
            NewNameSerializer,
            (),
        )
    )
    def post(self, request: Request) -> Response:
        actor_of(request).require_operator()
        zone = services.create_zone(**read_body(request, NewNameSerializer))
        return Response({"name": zone.name}, 201)


class Clients(ManagementView):
    """The clients of a zone."""

    queries = frozenset({"after", "limit"})

    @documented(
        Operation("List clients", {200: page_of(ClientSerializer)}, PAGED, parameters=(ZONE, *PAGE))
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        page = read_page(request)
        clients = selectors.list_clients(
            zone_id=actor.zone_id, after=page.after, count=page.limit + 1
        )
        items, after = cut_page(clients, page.limit, lambda client: client.name)
        found = with_changes(
            map(client_json, items), "client", actor.zone_id, [client.name for client in items]
        )
        return Response({"items": found, "next": after})

    @documented(
        Operation(
            "Create a client",
            {201: ClientSerializer},
            (*NAMED, errors.MissingField, errors.Conflict, errors.LimitReached),
            NewClientSerializer,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        client = services.create_client(
            zone_id=actor.zone_id, **read_body(request, NewClientSerializer)
        )
        resource = services.client_resource(actor.zone_id, client.name)
        return tagged(client_json(client), resource, 201)


class OneClient(ManagementView):
    """One client of a zone."""

    @documented(Operation("Show a client", {200: ClientSerializer}, NAMED))
    def get(self, request: Request, client: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        valid_name(client, field="client")
        found = selectors.find_client(zone_id=actor.zone_id, name=client)
        return tagged(client_json(found), services.client_resource(actor.zone_id, client))

    @documented(
        Operation(
            "Change the groups of a client",
            {200: ClientSerializer},
            (*NAMED, Changed),
            ClientChangeSerializer,
            CHANGE,
        )
    )
    def patch(self, request: Request, client: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        valid_name(client, field="client")
        found = services.change_client(
            zone_id=actor.zone_id,
            name=client,
            **read_body(request, ClientChangeSerializer),
            if_match=if_match(request),
        )
        return tagged(client_json(found), services.client_resource(actor.zone_id, client))

    @documented(
        Operation(
            "Delete a client; its keys, registrations and endpoints end with it",
            {204: None},
            (*NAMED, Changed),
            parameters=CHANGE,
        )
    )
    def delete(self, request: Request, client: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        valid_name(client, field="client")
        services.delete_client(zone_id=actor.zone_id, name=client, if_match=if_match(request))
        return Response(status=204)


class Channels(ManagementView):
    """The channel names of a zone; whoever has a key may read them."""

    @documented(Operation("List channels", {200: page_of(ChannelSerializer)}, (errors.NotFound,)))
    def get(self, request: Request) -> Response:
        zone_id = actor_of(request).zone_id
        channels = selectors.list_channels(zone_id=zone_id)
        items = [channel_json(channel) for channel in channels]
        items.append({"name": services.DEFAULT_CHANNEL, "mask": str(1 << 63), "bit": 63})
        items = with_changes(items, "channel", zone_id, [item["name"] for item in items])
        return Response({"items": items, "next": None})


class OneChannel(ManagementView):
    """One channel of a zone."""

    @documented(
        Operation(
            "Define a channel",
            {200: ChannelSerializer, 201: ChannelSerializer},
            (
                *NAMED,
                errors.MissingField,
                errors.InvalidMask,
                errors.NotPowerOfTwo,
                errors.ChannelConflict,
                Changed,
            ),
            ChannelMaskSerializer,
            PUT,
        )
    )
    def put(self, request: Request, channel: str) -> HttpResponse:
        actor = actor_of(request)
        actor.require_zone_manager()
        valid_name(channel, field="channel")
        body = read_body(request, ChannelMaskSerializer)
        found, new = services.define_channel(
            zone_id=actor.zone_id,
            name=channel,
            bit=body["mask"],
            if_match=condition_of_put(request),
        )
        resource = services.channel_resource(actor.zone_id, channel)
        return tagged(channel_json(found), resource, 201 if new else 200)
