"""The shapes of deliveries and their tries."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.models import Attempt, Delivery
from delivery.selectors import name_of
from eventhub.access.fields import MomentField
from eventhub.access.shapes import AnswerSerializer, Serializer

_MOMENT = MomentField()
STATES = tuple(Delivery.State.values)
ENDED = STATES[2:]  # without being delivered: these are listed for all endpoints together


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
    attempts = serializers.IntegerField(help_text="Tries so far.")
    next_attempt_at = serializers.SerializerMethodField(
        help_text="While it is being tried: when that is given up."
    )
    gap = serializers.SerializerMethodField(
        help_text="Events that were dropped before they were delivered: the endpoint is told so.",
    )

    class Meta:
        model = Delivery
        fields: tuple[str, ...] = (
            *("id", "endpoint", "stream", "segment", "sequence", "run", "registrations", "state"),
            *("attempts", "next_attempt_at", "created_at", "finished_at", "gap"),
        )

    def get_id(self, delivery: Delivery) -> str:
        return name_of(delivery)

    @extend_schema_field(MomentField(allow_null=True))
    def get_next_attempt_at(self, delivery: Delivery) -> str | None:
        """None when it is finished."""
        if delivery.state != Delivery.State.PENDING:
            return None
        return _MOMENT.to_representation(delivery.next_attempt_at)

    @extend_schema_field(GapSerializer(allow_null=True))
    def get_gap(self, delivery: Delivery) -> dict[str, Any] | None:
        return None if delivery.gap_first is None else GapSerializer.represent(delivery)


class TrySerializer(AnswerSerializer):
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
    tries = TrySerializer(many=True, help_text="The newest first.")

    class Meta(DeliverySerializer.Meta):
        fields = (*DeliverySerializer.Meta.fields, "event", "tries")
