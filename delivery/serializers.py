"""The shapes of deliveries and their tries, and of listens on record. Django module."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.models import Attempt, Delivery, Listen
from delivery.selectors import PLACE
from eventhub.api.fields import MomentField
from eventhub.api.pagination import micros, text_of
from eventhub.api.serializers import AnswerSerializer, Serializer

STATES = tuple(Delivery.State.values)
ENDED = STATES[2:]  # without being delivered: these are listed for all endpoints together
DOORS = ("websocket", "sse", "poll", "lines", "local", "many")
_UNSIGNED = (1 << 64) - 1


class GapSerializer(Serializer):
    first = serializers.IntegerField(source="gap_first")
    last = serializers.IntegerField(source="sequence")
    why = serializers.CharField(
        source="gap_reason", help_text="`age`, `size`, `count`, `quota`, `disk`, `backlog`, …"
    )


class DeliverySerializer(AnswerSerializer):
    id = serializers.SerializerMethodField()
    endpoint = serializers.IntegerField(source="endpoint_id")
    stream = serializers.CharField(source="stream_name")
    segment = serializers.UUIDField(source="segment_uuid")
    run = serializers.IntegerField(help_text="0 for what was delivered live.")
    registrations = serializers.ListField(
        child=serializers.IntegerField(), help_text="The registrations that matched, ascending."
    )
    attempt_count = serializers.IntegerField(source="attempts", help_text="Attempts so far.")
    next_attempt_at = MomentField(
        source="due_at",
        allow_null=True,
        help_text="While it is being tried: when that is given up.",
    )
    gap = serializers.SerializerMethodField(
        help_text="Events that were dropped before they were delivered: the endpoint is told so.",
    )

    class Meta:
        model = Delivery
        fields: tuple[str, ...] = (
            *("id", "endpoint", "stream", "segment", "sequence", "run", "registrations", "state"),
            *("attempt_count", "next_attempt_at", "created_at", "finished_at", "gap"),
        )

    def get_id(self, delivery: Delivery) -> str:
        return text_of(delivery, PLACE)

    @extend_schema_field(GapSerializer(allow_null=True))
    def get_gap(self, delivery: Delivery) -> dict[str, Any] | None:
        return None if delivery.gap_first is None else GapSerializer.represent(delivery)


class AttemptSerializer(AnswerSerializer):
    at = MomentField(source="attempted_at", help_text="When the request was sent.")
    outcome = serializers.CharField(
        help_text="`delivered`, or why not: `status`, `redirect`, `timeout`, `refused_address`, …"
    )

    class Meta:
        model = Attempt
        fields = (
            *("number", "at", "outcome", "status", "duration_ms", "url", "request", "response"),
        )


class OneDeliverySerializer(DeliverySerializer):
    event = serializers.DictField(
        allow_null=True, help_text="The event; null when it is not held any more."
    )
    attempts = AttemptSerializer(many=True, source="attempt_log", help_text="The newest first.")

    class Meta(DeliverySerializer.Meta):
        fields = (*DeliverySerializer.Meta.fields, "event", "attempts")


class PlaceSerializer(Serializer):
    segment = serializers.UUIDField(allow_null=True)
    sequence = serializers.IntegerField()


class ThroughSerializer(Serializer):
    segment = serializers.UUIDField(source="told_segment", allow_null=True)
    sequence = serializers.IntegerField(source="told_sequence")


class ListenSerializer(AnswerSerializer):
    id = serializers.SerializerMethodField()
    stream = serializers.CharField(source="stream_name")
    door = serializers.ChoiceField(
        choices=DOORS,
        help_text="`poll` and `lines`: requests that followed one another. `many`: the client began"
        " more listens within an hour than are kept; from here on they are not on record.",
    )
    after = PlaceSerializer(source="*", help_text="It is told what comes after this event.")
    mask = serializers.SerializerMethodField()
    through = ThroughSerializer(source="*", help_text="It was told all of that up to this event.")

    class Meta:
        model = Listen
        fields = (
            *("id", "stream", "node", "door", "listen", "start", "after", "mask", "filter"),
            *("registrations", "through", "events", "began_at", "seen_at", "ended_at", "why"),
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "listen": {"source": "name", "help_text": "Its name on a websocket."},
            "events": {"source": "told", "help_text": "So many."},
            "began_at": {"source": "started_at"},
            "seen_at": {"source": "last_seen_at", "help_text": "As of then."},
            "start": {
                "help_text": "What it began from: `cursor`, `now`, `oldest`, `boot`, `time`; `gap`"
                " or `state` behind what was missing; `continued` after a day."
            },
            "filter": {
                "help_text": "What it lets through, in predicate form; null: registrations, or too"
                " long."
            },
            "why": {
                "source": "end_reason",
                "help_text": "`stopped`, `left`, `slow_reader`, `gap`, `continued`, or the code of"
                " an error.",
            },
        }

    def get_id(self, listen: Listen) -> str:
        return f"{micros(listen.started_at)}.{listen.id}"

    def get_mask(self, listen: Listen) -> str:
        return str(listen.mask & _UNSIGNED)
