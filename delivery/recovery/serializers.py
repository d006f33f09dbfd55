"""The JSON form of requests to send deliveries again, and of replay runs. Django module."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.models import ReplayRun
from delivery.recovery.runs import WaitsFor
from eventhub.api.fields import (
    FlagField,
    MomentField,
    NameField,
    ObjectField,
    OneOfField,
    TextField,
    WholeField,
)
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import limits
from registrations.serializers import DraftSerializer, FilterField

RECOVERABLE = ("dead_lettered", "dropped", "cancelled")
_POSITION = "`<segment>:<sequence>`, or a time."


class ResendSerializer(Serializer):
    force = FlagField(
        default=False,
        help_text="Also send a delivery that was delivered or whose event has expired, and end a"
        " pause of the endpoint.",
    )
    new_id = FlagField(
        default=False,
        help_text="Send it under a new webhook-id, so that receivers handle it again.",
    )


class ExampleRequestSerializer(Serializer):
    """An example of a type, declared or not."""

    domain = NameField()
    type = NameField()
    attributes = ObjectField(
        required=False, help_text="By default an example made from the schema of the type."
    )


class _RunOptionsSerializer(Serializer):
    """How a run sends."""

    rate = WholeField(
        default=limits.REPLAY_RATE_DEFAULT,
        min_value=1,
        max_value=limits.REPLAY_RATE_MAX,
        help_text="Deliveries per second, at most.",
    )
    limit = WholeField(
        required=False, min_value=1, help_text="The run ends after so many deliveries."
    )
    new_id = FlagField(default=False, help_text="Send deliveries that exist under new webhook-ids.")


class RecoverRequestSerializer(_RunOptionsSerializer):
    """Deliveries of an endpoint that ended without success."""

    states = serializers.ListField(
        child=OneOfField(choices=RECOVERABLE),
        default=["dead_lettered", "dropped"],
        min_length=1,
        max_length=len(RECOVERABLE),
        help_text="The states in which they ended.",
    )
    since = MomentField(required=False, help_text="Only those that ended then or later.")
    until = MomentField(required=False, help_text="Only those that ended then or earlier.")
    outcome = TextField(
        required=False,
        max_length=limits.NAME_CHARS_MAX,
        help_text="Only those whose last attempt failed so: `timeout`, `status`, …",
    )
    status = WholeField(
        required=False,
        min_value=100,
        max_value=999,
        help_text="Only those whose last response had this status.",
    )
    streams = serializers.ListField(
        child=NameField(),
        required=False,
        min_length=1,
        max_length=limits.REPLAY_STREAMS_MAX,
        help_text="Only those of events of these streams.",
    )


class ReplayRequestSerializer(_RunOptionsSerializer, DraftSerializer):
    """Events of the log, to be sent to an endpoint."""

    endpoint = WholeField(help_text="The endpoint that receives them.")
    streams = serializers.ListField(
        child=NameField(),
        required=False,
        min_length=1,
        max_length=limits.REPLAY_STREAMS_MAX,
        help_text="The streams, one after another; by default those of the registration.",
    )
    vars()["from"] = TextField(
        required=False, help_text=f"`oldest` (the default), {_POSITION} The events after it."
    )
    to = TextField(
        required=False, help_text=f"{_POSITION} The events up to it; by default the head of now."
    )
    registration = WholeField(
        required=False,
        help_text="Instead of a filter: a registration of the endpoint's client, also an ended"
        " one.",
    )
    version = WholeField(
        required=False, help_text="The version of the registration; by default the newest one."
    )
    force = FlagField(
        default=False,
        help_text="Also send events that were delivered or discarded, or have expired.",
    )


class ReplayRangeSerializer(Serializer):
    stream = serializers.CharField()
    segment = serializers.UUIDField()
    after = serializers.IntegerField(help_text="The events after this sequence …")
    last = serializers.IntegerField(help_text="… up to this one.")


class ReplaySelectionSerializer(Serializer):
    """What a run sends. Fields that do not apply to its source are null."""

    ranges = ReplayRangeSerializer(many=True, allow_null=True)
    language = serializers.CharField(allow_null=True)
    filter = FilterField(allow_null=True)
    registration = serializers.IntegerField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    states = serializers.ListField(child=serializers.CharField(), allow_null=True)
    since = MomentField(allow_null=True)
    until = MomentField(allow_null=True)
    outcome = serializers.CharField(allow_null=True)
    status = serializers.IntegerField(allow_null=True)


class ReplaySerializer(AnswerSerializer):
    client = serializers.CharField(source="client.name", help_text="The owner of the endpoint.")
    endpoint = serializers.IntegerField(source="endpoint_id")
    selection = serializers.SerializerMethodField()
    limit = serializers.IntegerField(
        source="deliveries_max", allow_null=True, help_text="It ends after so many; null: no bound."
    )
    waits_for = serializers.ChoiceField(
        choices=["", *get_args(WaitsFor)],
        help_text="Why it makes no progress: `endpoint` (it is disabled), `backlog` (of pending"
        " deliveries), `forwarder` (it has yet to match these events), `archive` (unavailable).",
    )

    class Meta:
        model = ReplayRun
        fields = (
            *("id", "client", "endpoint", "source", "state", "selection", "rate", "limit"),
            *("force", "new_id", "total", "examined", "matched", "written", "skipped", "missing"),
            *("waits_for", "reason", "detail", "requested_by", "requested_at", "updated_at"),
            "ended_at",
        )

    @extend_schema_field(ReplaySelectionSerializer)
    def get_selection(self, run: ReplayRun) -> dict[str, Any]:
        params = run.params
        found = dict.fromkeys(ReplaySelectionSerializer().fields)
        for name in found.keys() & params.keys():
            found[name] = params[name]
        if run.source == "deliveries":
            found["since"] = params["since_us"] or None
            found["until"] = params["until_us"]
        return ReplaySelectionSerializer.represent(found)


class PreviewSampleSerializer(Serializer):
    stream = serializers.CharField()
    segment = serializers.UUIDField()
    sequence = serializers.IntegerField()
    appended_at = MomentField(allow_null=True)


class PreviewSerializer(Serializer):
    exact = serializers.BooleanField(
        help_text="All was examined. Otherwise `deliveries` and `duration_s` are estimated for a"
        " replay, and lower bounds for a recovery."
    )
    total = serializers.IntegerField(
        allow_null=True, help_text="Events or deliveries to examine, if known."
    )
    examined = serializers.IntegerField()
    matched = serializers.IntegerField(help_text="Of these, those that match.")
    deliveries = serializers.IntegerField(help_text="Deliveries that the run would send now.")
    skipped = serializers.IntegerField(
        help_text="Of those that match: delivered, discarded or pending already."
    )
    missing = serializers.IntegerField(help_text="Events that are no longer stored.")
    duration_s = serializers.FloatField(help_text="Duration at the rate of the request.")
    first = PreviewSampleSerializer(many=True, help_text="The first ones that it would send.")
    last = PreviewSampleSerializer(many=True, help_text="The last ones after these.")


class DeadLetterGroupSerializer(Serializer):
    endpoint = serializers.IntegerField()
    client = serializers.CharField()
    outcome = serializers.CharField(
        allow_null=True, help_text="Of the last attempt, as in a delivery's attempts."
    )
    status = serializers.IntegerField(
        allow_null=True, help_text="Of the last response, if there was one."
    )
    deliveries = serializers.IntegerField()
    first_at = MomentField(help_text="When the first of them ended.")
    last_at = MomentField()
    samples = serializers.ListField(
        child=serializers.CharField(), help_text="Ids of the newest deliveries."
    )
