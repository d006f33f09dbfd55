"""The shapes of the streams' bodies and answers."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import FlagField, MomentField, OneOfField, TextField, WholeField
from eventhub.access.shapes import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.eventlog.models import Segment
from eventhub.eventlog.streams import Durability, Matching, StreamPolicy


def _limit(most: int, help_text: str) -> WholeField:
    return WholeField(
        min_value=1,
        max_value=most,
        required=False,
        allow_null=True,
        help_text=f"{help_text} null: no such limit.",
    )


class PolicySerializer(Serializer):
    """What of a policy is given; null removes a limit."""

    durability = OneOfField(
        choices=get_args(Durability),
        required=False,
        help_text="What an emit waits for: `sync` the disk, `async` the server, `transient` memory"
        " alone. For good.",
    )
    segment_events_max = WholeField(
        min_value=1, max_value=limits.SEGMENT_EVENTS_MAX, required=False
    )
    segment_bytes_max = WholeField(min_value=1, max_value=limits.SEGMENT_BYTES_MAX, required=False)
    segment_age_s_max = _limit(limits.SEGMENT_AGE_S_MAX, "Seals a segment that is so old.")
    keyed = FlagField(
        required=False, help_text="The latest event of each `key` is kept as its state. For good."
    )
    restate = FlagField(
        required=False, help_text="The state is appended anew at each start; needs `keyed`."
    )
    retain_events = _limit(limits.RETAIN_EVENTS_MAX, "Sealed segments beyond it are dropped.")
    retain_bytes = _limit(limits.RETAIN_BYTES_MAX, "Sealed segments beyond it are dropped.")
    retain_age_s = _limit(limits.RETAIN_AGE_S_MAX, "Segments sealed so long ago are dropped.")
    on_lag = OneOfField(
        choices=("keep", "drop"),
        required=False,
        help_text="What a durable cursor still needs is kept beyond the limits, or dropped.",
    )
    hold = TextField(
        max_length=limits.TEXT_CHARS_MAX,
        required=False,
        allow_null=True,
        help_text="Why nothing may be dropped (a legal hold); null: it may.",
    )
    archive = FlagField(required=False, help_text="Sealed segments are archived.")
    undeclared = OneOfField(
        choices=("accept", "refuse"),
        required=False,
        help_text="Events of types that are not declared.",
    )
    matching = OneOfField(
        choices=get_args(Matching),
        required=False,
        help_text="The strategy that finds the registrations of its events; all find the same.",
    )
    quench = FlagField(
        required=False,
        help_text="Emitters may leave out events that nobody wants now; they are in no history.",
    )


class WholePolicySerializer(PolicySerializer):
    """A policy as it is shown: whole."""

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.required = True
        return fields


class CurrentSegmentSerializer(Serializer):
    uuid = serializers.UUIDField()
    first = serializers.IntegerField(help_text="The segment's first sequence.")
    sequence = serializers.IntegerField(
        help_text="The last sequence given; `first` - 1 while the segment is empty."
    )


class CursorSerializer(Serializer):
    segment = serializers.UUIDField()
    sequence = serializers.IntegerField()


class StreamSerializer(ChangedSerializer, WholePolicySerializer):
    """A stream with its policy. Positions of a transient stream are null while its memory is
    away.
    """

    name = serializers.CharField()
    created_at = MomentField(source="created_at_us")
    first = serializers.IntegerField(
        allow_null=True, help_text="The first sequence that can still be read."
    )
    last = serializers.IntegerField(
        source="sequence",
        allow_null=True,
        help_text="The last sequence given; 0 in a new stream.",
    )
    segment = CurrentSegmentSerializer(
        source="current", allow_null=True, help_text="The segment being written."
    )
    boot = CursorSerializer(
        allow_null=True,
        help_text="The last event before the hub's last start; null in a stream made since.",
    )

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for name in StreamPolicy._fields:
            fields[name].source = f"policy.{name}"
        return {"name": fields["name"], **fields}


class SegmentSerializer(AnswerSerializer):
    last = serializers.IntegerField(
        source="ends", help_text="The last sequence; `first` - 1 while empty."
    )
    sequence = serializers.IntegerField(source="ends", help_text="The same.")
    state = serializers.SerializerMethodField()
    bytes = serializers.IntegerField(
        source="shown_bytes",
        allow_null=True,
        help_text="Stored bytes; null for all but who manages the zone, of `system` but operators.",
    )
    archived = serializers.SerializerMethodField(
        help_text="Complete in the archive; it may be live too."
    )

    class Meta:
        model = Segment
        fields = (
            *("uuid", "first", "last", "sequence", "state", "tier", "bytes", "opened_at"),
            *("sealed_at", "archived", "removed_at", "removal_reason"),
        )

    @extend_schema_field(serializers.ChoiceField(choices=["open", "sealed"]))
    def get_state(self, segment: Segment) -> str:
        return "open" if segment.last is None else "sealed"

    def get_archived(self, segment: Segment) -> bool:
        return segment.archive_path is not None
