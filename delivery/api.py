"""Doors to deliveries: what is owed to endpoints, what became of it, and every try."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from delivery import selectors
from delivery.errors import UnknownDelivery
from delivery.selectors import DeliveryId, DeliveryRow, Wanted
from delivery.serializers import (
    ENDED,
    STATES,
    DeliverySerializer,
    OneDeliverySerializer,
    delivery_json,
    one_delivery_json,
)
from eventhub import errors
from eventhub.access.schema import PAGE, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_page
from registrations.errors import UnknownEndpoint
from registrations.pages import asked_name, asked_number

_ID = re.compile(r"\.".join([r"([0-9]{1,18})", r"([0-9]{1,9})", *[r"([0-9]{1,18})"] * 2,
                             r"([0-9]{1,9})"]))  # fmt: skip
_PARAMETERS = (
    ZONE,
    OpenApiParameter(
        "endpoint",
        int,
        description="Of this endpoint. Without it, name an event, or a `state` that is an end"
        f" without delivery ({', '.join(ENDED)}) for those of all endpoints: then a page may be"
        " short, or empty, with a `next`.",
    ),
    OpenApiParameter(
        "client", str, description="Of all endpoints of this client, without `endpoint`."
    ),
    OpenApiParameter("stream", str, description="Of this stream."),
    OpenApiParameter("sequence", int, description="With `stream`: of this event."),
    OpenApiParameter("state", str, enum=STATES, description="In this state."),
    *PAGE,
)


class Deliveries(ManagementView):
    """Deliveries of an endpoint, of an event, or those of all endpoints that have failed."""

    queries = frozenset({"after", "limit", "endpoint", "client", "state", "stream", "sequence"})

    @documented(
        Operation(
            "List deliveries of an endpoint, of an event, or failed ones of all endpoints",
            {200: page_of(DeliverySerializer)},
            (
                *(errors.InvalidField, errors.MissingField, errors.InvalidName),
                *(errors.FieldTooLong, errors.NotFound, errors.UnknownStream, UnknownEndpoint),
            ),
            parameters=_PARAMETERS,
        )
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        page = read_page(request)
        wanted = Wanted(_state(request), _after(page.after), page.limit + 1)
        endpoint, client = asked_number(request, "endpoint"), asked_name(request, "client")
        stream, sequence = asked_name(request, "stream"), asked_number(request, "sequence")
        if endpoint is None and sequence is None and wanted.state in ENDED:
            wanted = wanted._replace(rows_max=page.limit)
            ended = selectors.list_ended(actor=actor, client=client, stream=stream, wanted=wanted)
            return _page(ended.rows, ended.after and str(ended.after))
        if client is not None:
            raise errors.InvalidField(
                f"Name a `client` with a `state` of {', '.join(ENDED)}, and nothing else that says"
                " whose.",
                field="client",
            )
        if endpoint is not None and sequence is None:
            found = selectors.list_of_endpoint(
                actor=actor, endpoint_id=endpoint, stream=stream, wanted=wanted
            )
        elif endpoint is None and stream is not None and sequence is not None:
            found = selectors.list_of_event(
                actor=actor, stream=stream, sequence=sequence, wanted=wanted
            )
        else:
            raise errors.MissingField(
                "Name an `endpoint`, an event by `stream` and `sequence`, or a `state` of"
                f" {', '.join(ENDED)}.",
                field="endpoint",
            )
        return _page(*cut_page(found, page.limit, lambda row: str(row.id)))


class OneDelivery(ManagementView):
    """One delivery with its event and its tries."""

    @documented(
        Operation(
            "Show a delivery with its event and its tries",
            {200: OneDeliverySerializer},
            (UnknownDelivery,),
        )
    )
    def get(self, request: Request, delivery: str) -> Response:
        actor = actor_of(request)
        name = _id(delivery)
        if name is None:
            raise UnknownDelivery(field="delivery")
        row = selectors.find_delivery(actor=actor, delivery=name)
        event = selectors.find_event(actor=actor, delivery=row)
        return Response(one_delivery_json(row, event, selectors.list_tries(delivery=row.id)))


def _page(items: list[DeliveryRow], after: str | None) -> Response:
    return Response({"items": [delivery_json(row) for row in items], "next": after})


def _id(text: str) -> DeliveryId | None:
    found = _ID.fullmatch(text)
    return None if found is None else DeliveryId(*map(int, found.groups()))


def _after(text: str) -> DeliveryId | None:
    found = _id(text)
    if text and found is None:
        raise errors.InvalidField("Pass the `next` of the page before.", field="after")
    return found


def _state(request: Request) -> str | None:
    state: str | None = request.query_params.get("state")
    if state is not None and state not in STATES:
        raise errors.InvalidField(f"A state is one of {', '.join(STATES)}.", field="state")
    return state
