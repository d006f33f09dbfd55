"""Doors to endpoints: where the hub calls back."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.conditions import if_match, tagged, with_changes
from eventhub.access.schema import CHANGE, PAGE, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_body, read_page
from eventhub.eventlog.errors import Changed
from registrations.endpoints import selectors, services
from registrations.endpoints.rows import resource_of
from registrations.endpoints.serializers import (
    EndpointChangeSerializer,
    EndpointSerializer,
    MadeEndpointSerializer,
    NewEndpointSerializer,
    endpoint_json,
)
from registrations.endpoints.services import EndpointChange, EndpointTerms
from registrations.errors import EndpointInUse, RefusedAddress, UnknownEndpoint
from registrations.owners import owner
from registrations.pages import asked_name, number_after, number_of

CLIENT = OpenApiParameter(
    "client", str, description="Of this client only; a key sees its own client's."
)
_PAGED = (errors.InvalidField, errors.InvalidName, errors.FieldTooLong, errors.NotFound)
_URL = (errors.FieldTooLong, RefusedAddress)


class Endpoints(ManagementView):
    """The endpoints of a client, or of all clients of a zone."""

    queries = frozenset({"after", "limit", "client"})

    @documented(
        Operation(
            "List endpoints",
            {200: page_of(EndpointSerializer)},
            _PAGED,
            parameters=(ZONE, CLIENT, *PAGE),
        )
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        page = read_page(request)
        found = selectors.list_endpoints(
            actor=actor,
            client=asked_name(request, "client"),
            after=number_after(page),
            count=page.limit + 1,
        )
        items, after = cut_page(found, page.limit, lambda endpoint: str(endpoint.id))
        shown = with_changes(
            map(endpoint_json, items), "endpoint", actor.zone_id, [str(item.id) for item in items]
        )
        return Response({"items": shown, "next": after})

    @documented(
        Operation(
            "Create an endpoint; its secret is shown this once",
            {201: MadeEndpointSerializer},
            (*_PAGED, *_URL, errors.MissingField, errors.LimitReached),
            NewEndpointSerializer,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_body(request, NewEndpointSerializer)
        client = owner(actor=actor, name=body.pop("client", None))
        endpoint, made = services.create_endpoint(
            actor=actor, owner=client, terms=EndpointTerms(**body)
        )
        answer = {**endpoint_json(endpoint), "secret": made.secret}
        reply = tagged(answer, resource_of(actor.zone_id, made.id), 201)
        reply["Cache-Control"] = "no-store"
        return reply


class OneEndpoint(ManagementView):
    """One endpoint. Another client's is not found."""

    @documented(Operation("Show an endpoint", {200: EndpointSerializer}, (UnknownEndpoint,)))
    def get(self, request: Request, endpoint: str) -> Response:
        actor = actor_of(request)
        found = selectors.find_endpoint(actor=actor, endpoint_id=_number(endpoint))
        return tagged(endpoint_json(found), resource_of(actor.zone_id, found.id))

    @documented(
        Operation(
            "Change an endpoint, disable or enable it",
            {200: EndpointSerializer},
            (UnknownEndpoint, *_URL, Changed),
            EndpointChangeSerializer,
            CHANGE,
        )
    )
    def patch(self, request: Request, endpoint: str) -> Response:
        actor = actor_of(request)
        endpoint_id = _number(endpoint)
        change = EndpointChange(**read_body(request, EndpointChangeSerializer))
        found = services.change_endpoint(
            actor=actor,
            whose=selectors.whose(actor=actor),
            endpoint_id=endpoint_id,
            change=change,
            if_match=if_match(request),
        )
        return tagged(endpoint_json(found), resource_of(actor.zone_id, found.id))

    @documented(
        Operation(
            "Delete an endpoint that no registration names",
            {204: None},
            (UnknownEndpoint, EndpointInUse, Changed),
            parameters=CHANGE,
        )
    )
    def delete(self, request: Request, endpoint: str) -> Response:
        actor = actor_of(request)
        services.delete_endpoint(
            actor=actor,
            whose=selectors.whose(actor=actor),
            endpoint_id=_number(endpoint),
            if_match=if_match(request),
        )
        return Response(status=204)


def _number(endpoint: str) -> int:
    return number_of(endpoint, otherwise=UnknownEndpoint(field="endpoint"))
