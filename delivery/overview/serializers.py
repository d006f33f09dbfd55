"""The JSON form of the overview. Django module."""

from rest_framework import serializers

from eventhub.api.fields import MomentField
from eventhub.api.serializers import Serializer
from eventhub.base import limits
from eventhub.http.health import OVERALL, STATUSES

_MOST = f"{limits.OVERVIEW_COUNT_MAX} means that many or more"


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

    pending = serializers.IntegerField(allow_null=True, help_text=_MOST)
    due = serializers.IntegerField(allow_null=True, help_text="Pending deliveries that are due.")
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
