"""The shapes of the streams' bodies and answers."""

from typing import Any

from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import StrictSerializer, WholeField
from eventhub.event.json_codec import time_text
from eventhub.eventlog.streams import SegmentRow, StreamRow


class PolicySerializer(StrictSerializer):
    segment_events_max = WholeField(
        min_value=1, max_value=limits.SEGMENT_EVENTS_MAX, required=False
    )
    segment_bytes_max = WholeField(min_value=1, max_value=limits.SEGMENT_BYTES_MAX, required=False)


class CurrentSegmentSerializer(serializers.Serializer):
    uuid = serializers.UUIDField()
    first = serializers.IntegerField(help_text="The segment's first sequence.")
    sequence = serializers.IntegerField(
        help_text="The last sequence given; `first` - 1 while the segment is empty."
    )


class StreamSerializer(serializers.Serializer):
    name = serializers.CharField()
    segment_events_max = serializers.IntegerField()
    segment_bytes_max = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    first = serializers.IntegerField(help_text="The first sequence that can still be read.")
    last = serializers.IntegerField(help_text="The last sequence given; 0 in a new stream.")
    segment = CurrentSegmentSerializer(help_text="The segment being written.")


class SegmentSerializer(CurrentSegmentSerializer):
    last = serializers.IntegerField(
        source="sequence", help_text="The last sequence; `first` - 1 while empty."
    )
    state = serializers.ChoiceField(choices=["open", "sealed"])
    tier = serializers.ChoiceField(choices=["live", "archived", "dropped"])
    bytes = serializers.IntegerField(help_text="Stored bytes.")
    opened_at = serializers.DateTimeField()
    sealed_at = serializers.DateTimeField(allow_null=True)


class StoredEventSerializer(serializers.Serializer):
    """An event with what the log gave it; its own fields are those of the emit door."""

    stream = serializers.CharField()
    segment = serializers.UUIDField()
    sequence = serializers.IntegerField()
    appended_at = serializers.DateTimeField()
    domain = serializers.CharField()
    type = serializers.CharField()
    attributes = serializers.DictField()
    mask = serializers.CharField(help_text="64 channel bits as a decimal string.")


def stream_json(stream: StreamRow) -> dict[str, Any]:
    return {
        "name": stream.name,
        **stream.policy._asdict(),
        "created_at": time_text(stream.created_at_us),
        "first": stream.first,
        "last": stream.sequence,
        "segment": {
            "uuid": stream.segment,
            "first": stream.segment_first,
            "sequence": stream.sequence,
        },
    }


def segment_json(segment: SegmentRow) -> dict[str, Any]:
    sealed_at_us = segment.sealed_at_us
    return {
        "uuid": segment.uuid,
        "first": segment.first,
        "last": segment.last,
        "sequence": segment.last,
        "state": "open" if segment.open else "sealed",
        "tier": segment.tier,
        "bytes": segment.bytes,
        "opened_at": time_text(segment.opened_at_us),
        "sealed_at": None if sealed_at_us is None else time_text(sealed_at_us),
    }
