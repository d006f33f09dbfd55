"""The JSON form of deliveries, their attempts, listeners, and a zone's overview. Django module."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.models import Attempt, Delivery, Listener
from delivery.selectors import KEY_FIELDS
from eventhub.api.fields import MomentField
from eventhub.api.pagination import micros, text_of
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import limits
from eventhub.http.health import OVERALL, STATUSES

STATES = tuple(Delivery.State.values)
ENDED = STATES[2:]  # without delivery: listed for all endpoints together
TRANSPORTS = ("websocket", "sse", "poll", "lines", "local", "unrecorded")
_UNSIGNED = (1 << 64) - 1
_MOST = f"{limits.OVERVIEW_COUNT_MAX} means that many or more"


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
    registrations = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Ids of the registrations that matched, ascending.",
    )
    attempt_count = serializers.IntegerField(source="attempts", help_text="Attempts so far.")
    next_attempt_at = MomentField(
        source="due_at",
        allow_null=True,
        help_text="During an attempt: when its claim expires.",
    )
    gap = serializers.SerializerMethodField(
        help_text="A gap notice: the events dropped before delivery; else null.",
    )

    class Meta:
        model = Delivery
        fields: tuple[str, ...] = (
            *("id", "endpoint", "stream", "segment", "sequence", "registrations", "state"),
            *("attempt_count", "last_outcome", "last_status", "next_attempt_at", "created_at"),
            *("resent_at", "finished_at", "gap"),
        )

    def get_id(self, delivery: Delivery) -> str:
        return text_of(delivery, KEY_FIELDS)

    @extend_schema_field(GapSerializer(allow_null=True))
    def get_gap(self, delivery: Delivery) -> dict[str, Any] | None:
        return None if delivery.gap_first is None else GapSerializer.represent(delivery)


class AttemptSerializer(AnswerSerializer):
    at = MomentField(source="attempted_at", help_text="When the request was sent.")
    outcome = serializers.CharField(
        help_text="`delivered`, or the failure: `status`, `timeout`, `refused_address`, …"
    )

    class Meta:
        model = Attempt
        fields = (
            *("number", "at", "outcome", "status", "duration_ms", "url", "request", "response"),
        )


class OneDeliverySerializer(DeliverySerializer):
    event = serializers.DictField(
        allow_null=True, help_text="The event; null if it is no longer stored."
    )
    attempts = AttemptSerializer(many=True, source="attempt_log", help_text="The newest first.")

    class Meta(DeliverySerializer.Meta):
        fields = (*DeliverySerializer.Meta.fields, "event", "attempts")


class StartAfterSerializer(Serializer):
    segment = serializers.UUIDField(allow_null=True)
    sequence = serializers.IntegerField()


class DeliveredThroughSerializer(Serializer):
    segment = serializers.UUIDField(source="delivered_segment", allow_null=True)
    sequence = serializers.IntegerField(source="delivered_sequence")


class ListenerSerializer(AnswerSerializer):
    id = serializers.SerializerMethodField()
    stream = serializers.CharField(source="stream_name")
    transport = serializers.ChoiceField(
        choices=TRANSPORTS,
        help_text="`poll` and `lines`: one row stands for consecutive requests. `unrecorded`: the"
        " client started more listeners within an hour than are recorded; later ones have no row.",
    )
    after = StartAfterSerializer(source="*", help_text="The event after which it starts.")
    mask = serializers.SerializerMethodField()
    delivered_through = DeliveredThroughSerializer(
        source="*", help_text="Every matching event up to this one was delivered."
    )

    class Meta:
        model = Listener
        fields = (
            *("id", "stream", "node", "transport", "name", "start", "after", "mask", "filter"),
            *("registrations", "delivered_through", "delivered_events", "started_at", "updated_at"),
            *("ended_at", "end_reason"),
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "name": {"help_text": "Its name on a websocket."},
            "delivered_events": {"help_text": "Number of events delivered."},
            "updated_at": {"help_text": "Time of the delivered position and count."},
            "start": {
                "help_text": "Kind of start: `cursor`, `now`, `oldest`, `boot`, `time`; `gap` or"
                " `state` after missing events; `continued` after a day."
            },
            "filter": {
                "help_text": "Its filter in predicate form; null if it names registrations, or the"
                " filter is too long to be recorded."
            },
            "end_reason": {
                "help_text": "`stopped`, `disconnected`, `slow_reader`, `gap`, `continued`, or an"
                " error code; null while it is open.",
            },
        }

    def get_id(self, listener: Listener) -> str:
        return f"{micros(listener.started_at)}.{listener.id}"

    def get_mask(self, listener: Listener) -> str:
        return str(listener.mask & _UNSIGNED)


class StreamStateSerializer(Serializer):
    name = serializers.CharField()
    last = serializers.IntegerField(help_text="The last sequence of the stream.")
    matched = serializers.IntegerField(
        allow_null=True,
        help_text="Matched for callbacks up to this sequence; null if it never had a callback.",
    )
    lag = serializers.IntegerField(allow_null=True, help_text="Events not yet matched.")


class BacklogSerializer(Serializer):
    """Counts of deliveries; null if they could not be counted in time."""

    pending = serializers.IntegerField(
        allow_null=True,
        help_text=f"From {limits.OVERVIEW_PENDING_MAX} on, the number of the last count, which is"
        " made once a second, or once a minute where counting takes long.",
    )
    due = serializers.IntegerField(
        allow_null=True,
        help_text="Pending deliveries that are due; null from"
        f" {limits.OVERVIEW_PENDING_MAX} pending ones on.",
    )
    dead_lettered = serializers.IntegerField(allow_null=True, help_text=_MOST)


class EndpointCountsSerializer(Serializer):
    enabled = serializers.IntegerField()
    disabled = serializers.IntegerField()
    failing = serializers.IntegerField(
        help_text="Enabled endpoints without a success since their last failure."
    )
    total = serializers.IntegerField(help_text=_MOST)


class ProcessCountsSerializer(Serializer):
    """Live processes of the whole hub."""

    forwarders = serializers.IntegerField()
    workers = serializers.IntegerField()


class ComponentSerializer(Serializer):
    name = serializers.CharField()
    status = serializers.ChoiceField(
        choices=STATUSES,
        help_text="`off`: not configured. `starting`: no heartbeat yet since the hub started."
        " `unknown`: could not be checked recently.",
    )
    reason = serializers.CharField(allow_null=True, help_text="null while the component works.")
    since = MomentField(
        allow_null=True, help_text="The last heartbeat, or since when something is waiting."
    )


class HealthSerializer(Serializer):
    """The health that `/readyz` reports, with reasons."""

    status = serializers.ChoiceField(choices=OVERALL)
    as_of = MomentField(allow_null=True, help_text="The time of the last check.")
    components = ComponentSerializer(many=True)


class OverviewSerializer(Serializer):
    at = MomentField(help_text="The time of this reading; compute rates from two readings.")
    version = serializers.CharField(help_text="The hub's release.")
    streams = StreamStateSerializer(
        many=True, help_text=f"The first {limits.OVERVIEW_STREAMS_MAX} streams by name."
    )
    events = serializers.IntegerField(
        help_text="The sum of the last sequences of the zone's streams."
    )
    backlog = BacklogSerializer()
    endpoints = EndpointCountsSerializer()
    registrations = serializers.IntegerField(help_text=_MOST)
    processes = ProcessCountsSerializer()
    health = HealthSerializer(
        allow_null=True, help_text="The health of the whole hub; null outside a web process."
    )
