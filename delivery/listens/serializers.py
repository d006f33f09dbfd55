"""The shape of a listen on record."""

from rest_framework import serializers

from delivery.models import Listen
from eventhub.access.fields import MomentField
from eventhub.access.pagination import micros
from eventhub.access.shapes import AnswerSerializer, Serializer

DOORS = ("websocket", "sse", "poll", "lines", "local", "many")
_UNSIGNED = (1 << 64) - 1


class PlaceSerializer(Serializer):
    segment = serializers.UUIDField(allow_null=True)
    sequence = serializers.IntegerField()


class ThroughSerializer(Serializer):
    segment = serializers.UUIDField(source="told_segment", allow_null=True)
    sequence = serializers.IntegerField(source="told_sequence")


class ListenSerializer(AnswerSerializer):
    id = serializers.SerializerMethodField()
    stream = serializers.CharField(source="stream_name")
    node = serializers.CharField(
        help_text="The web process that told it, named anew at every start."
    )
    door = serializers.ChoiceField(
        choices=DOORS,
        help_text="`poll` and `lines`: requests that followed one another. `many`: the client began"
        " more listens within an hour than are kept; from here on they are not on record.",
    )
    listen = serializers.CharField(source="name", help_text="Its name on a websocket.")
    start = serializers.CharField(
        help_text="What it began from: `cursor`, `now`, `oldest`, `boot`, `time`; `gap` or `state`"
        " behind what was missing; `continued` after a day."
    )
    after = PlaceSerializer(source="*", help_text="It is told what comes after this event.")
    mask = serializers.SerializerMethodField()
    filter = serializers.CharField(
        allow_null=True,
        help_text="What it lets through, in predicate form; null: registrations, or too long.",
    )
    registrations = serializers.ListField(child=serializers.IntegerField())
    through = ThroughSerializer(source="*", help_text="It was told all of that up to this event.")
    events = serializers.IntegerField(source="told", help_text="So many.")
    began_at = MomentField(source="started_at")
    seen_at = MomentField(source="last_seen_at", help_text="As of then.")
    ended_at = MomentField(
        allow_null=True, help_text="Null: it goes on, or its process was killed."
    )
    why = serializers.CharField(
        source="end_reason",
        allow_null=True,
        help_text="`stopped`, `left`, `slow_reader`, `gap`, `continued`, or the code of an error.",
    )

    class Meta:
        model = Listen
        fields = (
            *("id", "stream", "node", "door", "listen", "start", "after", "mask", "filter"),
            *("registrations", "through", "events", "began_at", "seen_at", "ended_at", "why"),
        )

    def get_id(self, listen: Listen) -> str:
        return f"{micros(listen.started_at)}.{listen.id}"

    def get_mask(self, listen: Listen) -> str:
        return str(listen.mask & _UNSIGNED)
