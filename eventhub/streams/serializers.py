"""Serializers of streams, segments, state and storage. Django module."""

from typing import Any, get_args

import orjson
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import MomentField, OneOfField, WholeField
from eventhub.api.serializers import (
    AnswerSerializer,
    ChangedSerializer,
    ModelSerializer,
    Serializer,
)
from eventhub.base import limits
from eventhub.eventlog.keyed_state import KeyState
from eventhub.eventlog.models import Segment, Stream
from eventhub.eventlog.streams import Matching, StreamPolicy


def _limit(most: int, help_text: str) -> dict[str, Any]:
    return {
        "min_value": 1,
        "max_value": most,
        "help_text": f"{help_text} null: no such limit.",
    }


class PolicySerializer(ModelSerializer):
    """The policy fields to set; null removes a limit."""

    matching = OneOfField(
        choices=get_args(Matching),
        help_text="The strategy that matches its events to registrations; all find the same.",
    )

    class Meta:
        model = Stream
        fields: tuple[str, ...] = StreamPolicy._fields
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "durability": {
                "help_text": "What an emit waits for: `sync` the disk, `async` the server,"
                " `transient` memory only. It cannot be changed."
            },
            "segment_events_max": {"min_value": 1, "max_value": limits.SEGMENT_EVENTS_MAX},
            "segment_bytes_max": {
                "min_value": 1,
                "max_value": limits.SEGMENT_BYTES_MAX,
                "help_text": "The stored bytes at which a segment is sealed.",
            },
            "segment_age_s_max": _limit(
                limits.SEGMENT_AGE_S_MAX, "The age at which a segment is sealed."
            ),
            "keyed": {
                "help_text": "The latest event of each `key` is its state. It cannot be changed."
            },
            "restate": {"help_text": "Append the state again at each start; needs `keyed`."},
            "retain_events": _limit(
                limits.RETAIN_EVENTS_MAX, "Sealed segments beyond it are dropped."
            ),
            "retain_bytes": _limit(
                limits.RETAIN_BYTES_MAX, "Sealed segments beyond it are dropped."
            ),
            "retain_age_s": _limit(
                limits.RETAIN_AGE_S_MAX, "The time after sealing at which a segment is dropped."
            ),
            "on_lag": {
                "help_text": "Whether events that a durable cursor still needs are kept beyond the"
                " limits or dropped."
            },
            "hold": {"max_length": limits.TEXT_CHARS_MAX},
            "quench": {
                "help_text": "Producers may omit events that match no current interest; these are"
                " not stored."
            },
            "filterable_data": {
                "help_text": "Filters read the JSON body of an event as `data`. A body of more than"
                f" {limits.DATA_BYTES_MAX:,} bytes or {limits.DATA_VALUES_MAX:,} values is refused."
            },
        }

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.required, field.default = False, serializers.empty
        return fields


class WholePolicySerializer(AnswerSerializer, PolicySerializer):
    """A complete policy."""


class CurrentSegmentSerializer(Serializer):
    uuid = serializers.UUIDField()
    first = serializers.IntegerField(help_text="The segment's first sequence.")
    sequence = serializers.IntegerField(
        help_text="The last sequence assigned; `first` - 1 while the segment is empty."
    )


class CursorSerializer(Serializer):
    segment = serializers.UUIDField()
    sequence = serializers.IntegerField()


class StreamSerializer(WholePolicySerializer, ChangedSerializer):
    """A stream with its policy. Positions of a transient stream are null while its memory is
    unavailable.
    """

    created_at = MomentField(source="created_at_us")
    first = serializers.IntegerField(
        allow_null=True, help_text="The first sequence that can still be read."
    )
    last = serializers.IntegerField(
        source="sequence",
        allow_null=True,
        help_text="The last sequence assigned; 0 in a new stream.",
    )
    segment = CurrentSegmentSerializer(
        source="current", allow_null=True, help_text="The segment being written."
    )
    boot = CursorSerializer(
        allow_null=True,
        help_text="The last event before the hub's last start; null in a stream created since.",
    )

    deletes_at = MomentField(
        source="deletes_at_us",
        allow_null=True,
        help_text="The end of the grace period of its deletion; null: none is scheduled.",
    )

    class Meta(PolicySerializer.Meta):
        fields = (
            *("name", *StreamPolicy._fields, "created_at", "first", "last", "segment", "boot"),
            *("deletes_at", "changed"),
        )

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for name in StreamPolicy._fields:
            fields[name].source = f"policy.{name}"
        return fields


class SegmentSerializer(AnswerSerializer):
    last = serializers.IntegerField(
        source="ends", help_text="The last sequence; `first` - 1 while empty."
    )
    sequence = serializers.IntegerField(source="ends", help_text="The same as `last`.")
    state = serializers.SerializerMethodField()
    bytes = serializers.IntegerField(
        source="visible_bytes",
        allow_null=True,
        help_text="Stored bytes; null without `manage:*`. Those of `system` are for operators.",
    )
    archived = serializers.SerializerMethodField(
        help_text="True if the archive has the whole segment, which may still be live."
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


class KeyStateSerializer(Serializer):
    key = serializers.CharField()
    segment = serializers.UUIDField(source="stored.segment")
    sequence = serializers.IntegerField(
        source="stored.sequence", help_text="The sequence of the key's latest event; its ETag."
    )
    appended_at = MomentField(source="stored.appended_at_us")
    event = serializers.SerializerMethodField(help_text="The event as emitted.")

    def get_event(self, found: KeyState) -> dict[str, Any]:
        event: dict[str, Any] = orjson.loads(found.stored.json)
        return event


class SnapshotSerializer(Serializer):
    stream = serializers.CharField()
    cursor = CursorSerializer(help_text="Events after it have the changes since the snapshot.")
    items = KeyStateSerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="Pass as `after` for the next page; null at the end."
    )


class StartSerializer(CursorSerializer):
    """A cursor: a listener on `stream` from there receives `hub.started` first."""

    stream = serializers.CharField()
    started_at = MomentField()


class DiskSerializer(Serializer):
    free_bytes = serializers.IntegerField()
    total_bytes = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["ok", "low", "full"])


class SegmentCountsSerializer(Serializer):
    live = serializers.IntegerField(help_text="Segments in the database.")
    archived = serializers.IntegerField(help_text="Segments in the archive only.")
    dropped = serializers.IntegerField()


class StreamStorageSerializer(Serializer):
    name = serializers.CharField()
    bytes = serializers.IntegerField(help_text="Stored bytes in the database.")
    segments = SegmentCountsSerializer()
    removed = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Segments removed from the database, by reason: `age`, `size`, `count`, `quota`,"
        " `disk`, `continuity`.",
    )
    policy = WholePolicySerializer()
    first = serializers.IntegerField(help_text="The first sequence that can still be read.")
    last = serializers.IntegerField(help_text="The last sequence assigned.")


class ArchivedSerializer(Serializer):
    segments = serializers.IntegerField()
    bytes = serializers.IntegerField(help_text="Stored bytes.")


class UsageSerializer(Serializer):
    """Bytes on disk by kind of data, with indexes."""

    events = serializers.IntegerField()
    deliveries = serializers.IntegerField()
    keyed_state = serializers.IntegerField(help_text="Dropping events does not free it.")
    tokens = serializers.IntegerField(help_text="Dropping events does not free it.")


class StorageSerializer(Serializer):
    """Storage in use. Only operators receive figures of the whole hub other than `state`."""

    state = serializers.ChoiceField(
        choices=["ok", "low", "full"],
        help_text="Of the whole hub. `low`: the oldest segments are dropped early; `full`: emits"
        " are refused.",
    )
    used_bytes = serializers.IntegerField(
        allow_null=True, help_text="Of the whole hub, with indexes."
    )
    usage = UsageSerializer(
        allow_null=True, help_text="Of the whole hub: the parts of `used_bytes`."
    )
    quota_bytes = serializers.IntegerField(allow_null=True, help_text="Of the whole hub.")
    disk = DiskSerializer(allow_null=True, help_text="null: no disk is monitored.")
    partitions = serializers.IntegerField(
        allow_null=True, help_text="Partitions of events, of the whole hub."
    )
    streams = StreamStorageSerializer(
        many=True, help_text="The streams of the zone, largest first."
    )
    archive = ArchivedSerializer(allow_null=True, help_text="null: the hub has no archive.")


class QuotaSerializer(Serializer):
    quota_bytes = WholeField(
        min_value=limits.QUOTA_BYTES_MIN,
        max_value=limits.RETAIN_BYTES_MAX,
        allow_null=True,
        help_text="null: the value of EVENTHUB_QUOTA_BYTES.",
    )
