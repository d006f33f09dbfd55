"""The shape of the overview. Django module."""

from rest_framework import serializers

from eventhub.api.fields import MomentField
from eventhub.api.serializers import Serializer
from eventhub.base import limits
from eventhub.http.health import OVERALL, STATUSES

_MOST = f"{limits.OVERVIEW_COUNT_MAX} means that many or more"


class StreamStateSerializer(Serializer):
    name = serializers.CharField()
    last = serializers.IntegerField(help_text="The last sequence given.")
    matched = serializers.IntegerField(
        allow_null=True,
        help_text="Matched for callbacks up to this sequence; null when none ever wanted any.",
    )
    lag = serializers.IntegerField(allow_null=True, help_text="Events not matched yet.")


class BacklogSerializer(Serializer):
    """Deliveries; null when they could not be counted in time."""

    pending = serializers.IntegerField(allow_null=True, help_text=_MOST)
    due = serializers.IntegerField(allow_null=True, help_text="Pending ones whose time has come.")
    dead_lettered = serializers.IntegerField(allow_null=True, help_text=_MOST)


class EndpointCountsSerializer(Serializer):
    enabled = serializers.IntegerField()
    disabled = serializers.IntegerField()
    failing = serializers.IntegerField(
        help_text="Enabled, and no callback was answered with 2xx since one failed."
    )
    total = serializers.IntegerField(help_text=_MOST)


class ProcessCountsSerializer(Serializer):
    """Alive, of the whole hub."""

    forwarders = serializers.IntegerField()
    workers = serializers.IntegerField()


class ComponentSerializer(Serializer):
    name = serializers.CharField()
    status = serializers.ChoiceField(
        choices=STATUSES,
        help_text="`off`: not configured. `starting`: not seen yet since the hub started."
        " `unknown`: could not be looked at lately.",
    )
    reason = serializers.CharField(allow_null=True, help_text="null while it works.")
    since = MomentField(
        allow_null=True, help_text="When it was seen last, or since when something waits."
    )


class HealthSerializer(Serializer):
    """What `/readyz` says, with reasons."""

    status = serializers.ChoiceField(choices=OVERALL)
    as_of = MomentField(allow_null=True, help_text="When it was looked at last.")
    components = ComponentSerializer(many=True)


class OverviewSerializer(Serializer):
    at = MomentField(help_text="When it was read; rates come from two readings.")
    version = serializers.CharField(help_text="The release that answers.")
    streams = StreamStateSerializer(
        many=True, help_text=f"The first {limits.OVERVIEW_STREAMS_MAX} by name."
    )
    events = serializers.IntegerField(help_text="The last sequences of all the zone's streams.")
    backlog = BacklogSerializer()
    endpoints = EndpointCountsSerializer()
    registrations = serializers.IntegerField(help_text=_MOST)
    processes = ProcessCountsSerializer()
    health = HealthSerializer(
        allow_null=True, help_text="Of the whole hub; null where no web process serves."
    )
