"""Endpoints: where the hub calls back."""

from typing import Any

from django.db.models import QuerySet

from eventhub import errors
from eventhub.access.resource import ResourceView, operation
from registrations.endpoints import services
from registrations.endpoints.selectors import HEALTH, endpoints_of
from registrations.endpoints.serializers import (
    EndpointChangeSerializer,
    EndpointSerializer,
    MadeEndpointSerializer,
    NewEndpointSerializer,
)
from registrations.endpoints.services import EndpointTerms
from registrations.errors import EndpointInUse, UnknownEndpoint
from registrations.filtersets import OfClient
from registrations.models import Endpoint
from registrations.owners import owner
from registrations.permissions import ListensSomewhere


class Endpoints(ResourceView):
    """The endpoints of a client, or of all clients of a zone. Another client's is not found."""

    noun = "an endpoint", "endpoints"
    kind = "endpoint"
    unknown = UnknownEndpoint
    lookup_url_kwarg = "endpoint"
    permission_classes = (ListensSomewhere,)
    queryset = Endpoint.objects.all()
    serializer_class = EndpointSerializer
    filterset_class = OfClient
    listed = (
        *("pk", "id", "client_name", "url", "description", "ordered", "format", "enabled"),
        *("reason", "created_at", "changed_at", *HEALTH),
    )

    def get_queryset(self) -> QuerySet[Endpoint]:
        return endpoints_of(actor=self.actor)

    @operation(
        "Create an endpoint; its secret is shown this once",
        errors.LimitReached,
        body=NewEndpointSerializer,
        answer=MadeEndpointSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Endpoint:
        client = owner(actor=self.actor, name=body.pop("client", None))
        terms = EndpointTerms(**body)
        return services.create_endpoint(actor=self.actor, owner=client, terms=terms)

    @operation("Change an endpoint, disable or enable it", body=EndpointChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> Endpoint:
        return services.change_endpoint(
            actor=self.actor, endpoint_id=self.key, given=body, if_match=self.if_match
        )

    @operation("Delete an endpoint that no registration names", EndpointInUse)
    def perform_destroy(self) -> None:
        services.delete_endpoint(actor=self.actor, endpoint_id=self.key, if_match=self.if_match)
