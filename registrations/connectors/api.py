"""The API of connectors. Django module."""

from typing import Any

from django.db.models import QuerySet

from eventhub.access import roles
from eventhub.api.permissions import IsAuthenticated
from eventhub.api.resource import operation, parse_number
from eventhub.base import errors
from eventhub.eventlog.errors import StreamDeleting
from registrations.connectors import selectors, services
from registrations.connectors.errors import ConnectorExists, UnknownConnector
from registrations.connectors.filtersets import ConnectorFilters
from registrations.connectors.models import Connector
from registrations.connectors.serializers import (
    ConnectorChangeSerializer,
    ConnectorSerializer,
    ConnectorTestSerializer,
    NewConnectorSerializer,
)
from registrations.resource import OwnedView
from registrations.sources.errors import UnmappedDelivery
from registrations.sources.serializers import MappedEventSerializer


class Connectors(OwnedView):
    """The connectors of a client to streams that the key may emit to, or of all clients of a zone.
    Another client's connector is not found.
    """

    noun = "a connector", "connectors"
    kind = "connector"
    unknown = UnknownConnector
    lookup_url_kwarg = "connector"
    permission_classes = (IsAuthenticated,)
    queryset = Connector.objects.all()
    serializer_class = ConnectorSerializer
    filterset_class = ConnectorFilters

    def get_queryset(self) -> QuerySet[Connector]:
        return selectors.connectors_of(actor=self.actor)

    @operation(
        "Create a connector",
        *(ConnectorExists, errors.LimitReached, errors.UnknownStream, StreamDeleting),
        *(errors.MissingField, errors.FieldTooLong),
        body=NewConnectorSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Connector:
        owner = self.owner(body)
        fields = services.NewConnector(**{"mapping": {}, **body})
        return services.create_connector(actor=self.actor, owner=owner, fields=fields)

    @operation(
        "Change the URL or the map of a connector, pause or resume it",
        *(errors.MissingField, errors.FieldTooLong),
        body=ConnectorChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Connector:
        with self.changing() as connector:
            return services.change_connector(actor=self.actor, connector=connector, given=body)

    @operation("Delete a connector")
    def perform_destroy(self) -> None:
        with self.changing() as connector:
            services.delete_connector(actor=self.actor, connector=connector)


class ConnectorTests(OwnedView):
    """The test bench of a connector."""

    permission_classes = Connectors.permission_classes
    queryset = Connector.objects.all()
    serializer_class = MappedEventSerializer

    @operation(
        "Apply the map of a connector, or another one, to a row without emitting it",
        *(UnknownConnector, UnmappedDelivery, errors.InvalidUtf8, errors.FieldTooLong),
        *(errors.TooDeep, errors.NumberOutOfRange, errors.EventTooLarge),
        body=ConnectorTestSerializer,
        response=MappedEventSerializer,
        status=200,
        role=roles.VIEWER,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        unknown = UnknownConnector(field="connector")
        number = parse_number(self.kwargs["connector"], error=unknown)
        found = selectors.connectors_of(actor=self.actor).filter(pk=number).first()
        if found is None:
            raise unknown
        return {"event": services.try_row(found, body)}
