"""Doors to what concerns the hub as a whole: its last start, and what its data takes."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors, limits
from eventhub.access.fields import StrictSerializer, WholeField
from eventhub.access.grants import SYSTEM
from eventhub.access.schema import Operation, documented
from eventhub.access.view import ManagementView, actor_of, read_body
from eventhub.event.json_codec import time_text
from eventhub.eventlog.storage import StreamStorage
from eventhub.streams import hub
from eventhub.streams.hub import Report
from eventhub.streams.serializers import CursorSerializer, PolicySerializer


class StartSerializer(CursorSerializer):
    """A cursor: a listen on `stream` from there begins with `hub.started`."""

    stream = serializers.CharField()
    started_at = serializers.DateTimeField()


class DiskSerializer(serializers.Serializer):
    free_bytes = serializers.IntegerField()
    total_bytes = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["ok", "low", "full"])


class SegmentCountsSerializer(serializers.Serializer):
    live = serializers.IntegerField(help_text="In the database.")
    archived = serializers.IntegerField(help_text="In the archive alone.")
    dropped = serializers.IntegerField()


class StreamStorageSerializer(serializers.Serializer):
    name = serializers.CharField()
    bytes = serializers.IntegerField(help_text="Stored bytes in the database.")
    segments = SegmentCountsSerializer()
    left = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Segments that are no longer in the database, by why: `age`, `size`, `count`,"
        " `quota`, `disk`, `continuity`.",
    )
    policy = PolicySerializer()
    first = serializers.IntegerField(help_text="The first sequence that can still be read.")
    last = serializers.IntegerField(help_text="The last sequence given.")


class ArchivedSerializer(serializers.Serializer):
    segments = serializers.IntegerField()
    bytes = serializers.IntegerField(help_text="Stored bytes.")


class HeldSerializer(serializers.Serializer):
    """Bytes on the disk by what they are, with indexes."""

    events = serializers.IntegerField()
    deliveries = serializers.IntegerField()
    keyed_state = serializers.IntegerField(help_text="No dropping of events frees it.")
    tokens = serializers.IntegerField(help_text="Likewise.")


class StorageSerializer(serializers.Serializer):
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


class QuotaSerializer(StrictSerializer):
    quota_bytes = WholeField(
        min_value=limits.QUOTA_BYTES_MIN,
        max_value=limits.RETAIN_BYTES_MAX,
        allow_null=True,
        help_text="null: as EVENTHUB_QUOTA_BYTES says.",
    )


class Start(ManagementView):
    """The hub's last start (EMC-17)."""

    @documented(Operation("Show the hub's last start", {200: StartSerializer}, (errors.NotFound,)))
    def get(self, request: Request) -> Response:
        actor_of(request)
        found = hub.find_boot()
        started_at = time_text(found.started_at_us)
        return Response({"stream": SYSTEM, **found.cursor._asdict(), "started_at": started_at})


class Storage(ManagementView):
    """What the hub's data takes, and what policies have done (EMC-26)."""

    conditional = False

    @documented(
        Operation(
            "Show what the data takes, and what each policy has dropped",
            {200: StorageSerializer},
            (errors.NotFound,),
        )
    )
    def get(self, request: Request) -> Response:
        return Response(_json(hub.report(actor=actor_of(request))))

    @documented(
        Operation(
            "Set the quota of the hub",
            {200: StorageSerializer},
            (errors.NotFound, errors.MissingField),
            QuotaSerializer,
        )
    )
    def put(self, request: Request) -> Response:
        actor = actor_of(request)
        hub.set_quota(actor=actor, **read_body(request, QuotaSerializer))
        return Response(_json(hub.report(actor=actor)))


def _json(report: Report) -> dict[str, Any]:
    found, hub_wide = report.storage, report.hub_wide
    return {
        "state": report.state,
        "used_bytes": found.used_bytes if hub_wide else None,
        "held": found.held._asdict() if hub_wide else None,
        "quota_bytes": found.quota_bytes if hub_wide else None,
        "disk": report.disk._asdict() if report.disk and hub_wide else None,
        "groups": found.groups if hub_wide else None,
        "streams": [_stream_json(report, one) for one in found.streams],
        "archive": report.archived and report.archived._asdict(),
    }


def _stream_json(report: Report, stream: StreamStorage) -> dict[str, Any]:
    return {
        "name": stream.name,
        "bytes": stream.bytes,
        "segments": {
            "live": stream.live,
            "archived": stream.archived,
            "dropped": stream.dropped,
        },
        "left": report.left.get(stream.id, {}),
        "policy": report.policies[stream.id]._asdict(),
        "first": stream.first,
        "last": stream.last,
    }
