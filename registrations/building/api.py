"""A stream's match index: how it stands, and that it is built now."""

from typing import Any

from eventhub import errors
from eventhub.access.permissions import ManagesStream
from eventhub.access.resource import ResourceView, operation
from eventhub.access.shapes import Serializer
from eventhub.soon import RedisOff
from registrations.building import selectors, services
from registrations.building.serializers import MatchIndexSerializer
from registrations.building.standing import Standing
from registrations.errors import NothingToIndex


class NoFieldsSerializer(Serializer):
    """Nothing is to be said."""


class MatchIndex(ResourceView):
    """The match index of a stream; for who may manage it."""

    unknown = errors.UnknownStream
    permission_classes = (ManagesStream,)
    serializer_class = MatchIndexSerializer

    @operation("Show a stream's match index")
    def get_object(self) -> Standing:
        return selectors.find_standing(actor=self.actor, stream=self.kwargs["stream"])

    @operation(
        "Build a stream's match index now; a worker does it",
        NothingToIndex,
        RedisOff,
        body=NoFieldsSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Standing:
        return services.ask_build(actor=self.actor, stream=self.kwargs["stream"])
