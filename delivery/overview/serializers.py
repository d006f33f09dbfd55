"""The shape of the overview."""

from typing import Any

from rest_framework import serializers

from delivery.overview.selectors import Overview
from eventhub import limits

_MOST = f"{limits.OVERVIEW_COUNT_MAX} means that many or more"


class StreamStateSerializer(serializers.Serializer):
    name = serializers.CharField()
    last = serializers.IntegerField(help_text="The last sequence given.")
    matched = serializers.IntegerField(
        allow_null=True,
        help_text="Matched for callbacks up to this sequence; null when none ever wanted any.",
    )
    lag = serializers.IntegerField(allow_null=True, help_text="Events not matched yet.")


class BacklogSerializer(serializers.Serializer):
    """Deliveries; null when they could not be counted in time."""

    pending = serializers.IntegerField(allow_null=True, help_text=_MOST)
    due = serializers.IntegerField(allow_null=True, help_text="Pending ones whose time has come.")
    dead = serializers.IntegerField(allow_null=True, help_text=_MOST)


class EndpointCountsSerializer(serializers.Serializer):
    enabled = serializers.IntegerField()
    disabled = serializers.IntegerField()
    total = serializers.IntegerField(help_text=_MOST)


class ProcessCountsSerializer(serializers.Serializer):
    forwarders = serializers.IntegerField(help_text="Alive, of the whole hub.")


class ChecksSerializer(serializers.Serializer):
    database = serializers.CharField(help_text="`ok`.")
    redis = serializers.CharField(help_text="`ok`, `away` or `not configured`.")


class OverviewSerializer(serializers.Serializer):
    at = serializers.DateTimeField(help_text="When it was read; rates come from two readings.")
    streams = StreamStateSerializer(
        many=True, help_text=f"The first {limits.OVERVIEW_STREAMS_MAX} by name."
    )
    events = serializers.IntegerField(help_text="The last sequences of all the zone's streams.")
    backlog = BacklogSerializer()
    endpoints = EndpointCountsSerializer()
    registrations = serializers.IntegerField(help_text=_MOST)
    processes = ProcessCountsSerializer()
    checks = ChecksSerializer()


def overview_json(found: Overview, *, at: str, redis: str) -> dict[str, Any]:
    return {
        "at": at,
        "streams": [{**stream._asdict(), "lag": stream.lag} for stream in found.streams],
        "events": found.events,
        "backlog": {"pending": found.pending, "due": found.due, "dead": found.dead},
        "endpoints": {
            "enabled": found.enabled,
            "disabled": found.disabled,
            "total": found.endpoints,
        },
        "registrations": found.registrations,
        "processes": {"forwarders": found.forwarders},
        "checks": {"database": "ok", "redis": redis},
    }
