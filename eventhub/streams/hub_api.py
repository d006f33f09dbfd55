"""Doors to what concerns the hub as a whole: its last start, and what its data takes."""

from typing import Any

from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import MomentField, WholeField
from eventhub.access.permissions import IsOperator, IsZoneManager
from eventhub.access.resource import ResourceView, operation
from eventhub.access.shapes import Serializer
from eventhub.streams import hub
from eventhub.streams.hub import Report
from eventhub.streams.serializers import WholePolicySerializer


class StartSerializer(Serializer):
    """A cursor: a listen on `stream` from there begins with `hub.started`."""

    segment = serializers.UUIDField(source="cursor.segment")
    sequence = serializers.IntegerField(source="cursor.sequence")
    stream = serializers.CharField()
    started_at = MomentField(source="started_at_us")


class DiskSerializer(Serializer):
    free_bytes = serializers.IntegerField()
    total_bytes = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["ok", "low", "full"])


class SegmentCountsSerializer(Serializer):
    live = serializers.IntegerField(help_text="In the database.")
    archived = serializers.IntegerField(help_text="In the archive alone.")
    dropped = serializers.IntegerField()


class StreamStorageSerializer(Serializer):
    name = serializers.CharField(source="storage.name")
    bytes = serializers.IntegerField(
        source="storage.bytes", help_text="Stored bytes in the database."
    )
    segments = SegmentCountsSerializer(source="storage")
    left = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Segments that are no longer in the database, by why: `age`, `size`, `count`,"
        " `quota`, `disk`, `continuity`.",
    )
    policy = WholePolicySerializer()
    first = serializers.IntegerField(
        source="storage.first", help_text="The first sequence that can still be read."
    )
    last = serializers.IntegerField(source="storage.last", help_text="The last sequence given.")


class ArchivedSerializer(Serializer):
    segments = serializers.IntegerField()
    bytes = serializers.IntegerField(help_text="Stored bytes.")


class HeldSerializer(Serializer):
    """Bytes on the disk by what they are, with indexes."""

    events = serializers.IntegerField()
    deliveries = serializers.IntegerField()
    keyed_state = serializers.IntegerField(help_text="No dropping of events frees it.")
    tokens = serializers.IntegerField(help_text="Likewise.")


class StorageSerializer(Serializer):
    """What is of the whole hub is null for all but operators, except `state`."""

    state = serializers.ChoiceField(
        choices=["ok", "low", "full"],
        help_text="Of the whole hub. `low`: the oldest segments leave before their time; `full`:"
        " emits are refused.",
    )
    used_bytes = serializers.IntegerField(
        allow_null=True, help_text="Of the whole hub, with indexes."
    )
    held = HeldSerializer(allow_null=True, help_text="Of the whole hub: what `used_bytes` is.")
    quota_bytes = serializers.IntegerField(allow_null=True, help_text="Of the whole hub.")
    disk = DiskSerializer(allow_null=True, help_text="null: nobody watches a disk.")
    groups = serializers.IntegerField(
        allow_null=True, help_text="Partitions of events, of the whole hub."
    )
    streams = StreamStorageSerializer(many=True, help_text="Of the zone, the largest first.")
    archive = ArchivedSerializer(allow_null=True, help_text="null: this hub has no archive.")


class QuotaSerializer(Serializer):
    quota_bytes = WholeField(
        min_value=limits.QUOTA_BYTES_MIN,
        max_value=limits.RETAIN_BYTES_MAX,
        allow_null=True,
        help_text="null: as EVENTHUB_QUOTA_BYTES says.",
    )


class Start(ResourceView):
    """The hub's last start (EMC-17)."""

    serializer_class = StartSerializer

    @operation("Show the hub's last start")
    def get_object(self) -> hub.Start:
        return hub.find_boot()


class Storage(ResourceView):
    """What the hub's data takes, and what policies have done (EMC-26)."""

    permission_classes = (IsZoneManager,)
    serializer_class = StorageSerializer

    @operation("Show what the data takes, and what each policy has dropped")
    def get_object(self) -> Report:
        return hub.report(actor=self.actor)

    @operation("Set the quota of the hub", body=QuotaSerializer, permissions=(IsOperator,))
    def perform_update(self, body: dict[str, Any]) -> tuple[Report, bool]:
        hub.set_quota(**body)
        return hub.report(actor=self.actor), False
