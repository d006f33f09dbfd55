"""Doors to a stream's match index: how it stands, and that it is built now."""

from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.fields import StrictSerializer
from eventhub.access.names import valid_name
from eventhub.access.schema import Operation, documented
from eventhub.access.view import ManagementView, actor_of, read_body
from registrations.building import selectors, services
from registrations.building.serializers import MatchIndexSerializer
from registrations.building.standing import standing_json
from registrations.errors import NothingToIndex

_NAMED = (errors.InvalidName, errors.FieldTooLong, errors.UnknownStream, errors.NotFound)


class NoFieldsSerializer(StrictSerializer):
    """Nothing is to be said."""


class MatchIndex(ManagementView):
    """The match index of a stream; for who may manage it."""

    conditional = False

    @documented(Operation("Show a stream's match index", {200: MatchIndexSerializer}, _NAMED))
    def get(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        found = selectors.find_standing(actor=actor, stream=stream)
        return Response(standing_json(found))

    @documented(
        Operation(
            "Build a stream's match index now; a worker does it",
            {202: MatchIndexSerializer},
            (*_NAMED, NothingToIndex),
            NoFieldsSerializer,
        )
    )
    def post(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        read_body(request, NoFieldsSerializer)
        found = services.ask_build(actor=actor, stream=stream)
        return Response(standing_json(found), 202)
