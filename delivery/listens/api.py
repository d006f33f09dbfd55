"""The door to the record of listens."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.listens import selectors
from delivery.listens.selectors import ListenId
from delivery.listens.serializers import ListenSerializer, listen_json
from eventhub import errors
from eventhub.access.names import valid_name
from eventhub.access.schema import PAGE, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_page
from registrations.pages import asked_name

_ID = re.compile(r"([0-9]{1,17})\.([0-9]{1,18})")


class ClientListens(ManagementView):
    """When a client listened, from where, and how far it was told."""

    queries = frozenset({"after", "limit", "stream"})

    @documented(
        Operation(
            "List when a client listened, and how far it was told",
            {200: page_of(ListenSerializer)},
            (
                *(errors.InvalidField, errors.InvalidName, errors.FieldTooLong),
                *(errors.NotFound, errors.UnknownStream),
            ),
            parameters=(
                ZONE,
                OpenApiParameter("stream", str, description="To this stream."),
                *PAGE,
            ),
        )
    )
    def get(self, request: Request, client: str) -> Response:
        actor = actor_of(request)
        valid_name(client, field="client")
        page = read_page(request)
        found = selectors.list_listens(
            actor=actor,
            client=client,
            stream=asked_name(request, "stream"),
            after=_after(page.after),
            rows_max=page.limit + 1,
        )
        items, after = cut_page(found, page.limit, lambda row: str(row.place))
        return Response({"items": [listen_json(row) for row in items], "next": after})


def _after(text: str) -> ListenId | None:
    found = _ID.fullmatch(text)
    if text and found is None:
        raise errors.InvalidField("Pass the `next` of the page before.", field="after")
    return None if found is None else ListenId(int(found[1]), int(found[2]))
