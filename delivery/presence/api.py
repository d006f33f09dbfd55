"""The view of connected clients. Django module."""

from django.db.models import QuerySet
from rest_framework import serializers

from delivery.presence import selectors
from eventhub.access.models import Client
from eventhub.api.fields import MomentField
from eventhub.api.resource import ResourceView
from eventhub.api.serializers import AnswerSerializer


class PresenceSerializer(AnswerSerializer):
    """A connected client."""

    client = serializers.CharField(source="name")
    sockets = serializers.IntegerField(
        help_text="Its open websockets and requests of listeners, in all web processes."
    )
    since = MomentField(
        allow_null=True,
        help_text="When its event `presence.joined` was appended; null: not, or not yet.",
    )

    class Meta:
        model = Client
        fields = ("client", "sockets", "since")


class Presence(ResourceView):
    """The clients of a zone that are connected now. A key that does not manage the zone sees its
    own client.
    """

    noun = "a connected client", "the clients that are connected now"
    queryset = Client.objects.all()
    serializer_class = PresenceSerializer
    ordering = ("name",)

    def get_queryset(self) -> QuerySet[Client]:
        return selectors.connected_clients(actor=self.actor)
