"""The API of the statistics of an endpoint. Django module."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from delivery.statistics import selectors
from eventhub.api.fields import MomentField
from eventhub.api.resource import operation
from eventhub.api.serializers import Serializer
from eventhub.base import errors, limits
from registrations.errors import UnknownEndpoint
from registrations.models import Endpoint
from registrations.resource import OwnedView

_STEPS = tuple(selectors.STEPS)
_STEP = OpenApiParameter(
    "step",
    str,
    enum=_STEPS,
    default=_STEPS[0],
    description=f"`minute`, the default: the last {limits.ENDPOINT_STATISTICS_MINUTES} minutes."
    f" `hour`: the last {limits.ENDPOINT_STATISTICS_HOURS} hours.",
)


class FailuresSerializer(Serializer):
    """Failed attempts by kind."""

    client_errors = serializers.IntegerField(help_text="Answered with 4xx.")
    server_errors = serializers.IntegerField(help_text="Answered with 5xx.")
    timeouts = serializers.IntegerField(help_text="The outcome `timeout`.")
    connection_errors = serializers.IntegerField(
        help_text="`unknown_host`, `connection`, `tls`, `refused_address`."
    )
    other = serializers.IntegerField(help_text="All other outcomes and status codes.")


class PercentilesSerializer(Serializer):
    """Percentiles in milliseconds, estimated from a histogram; at most 41 % off."""

    p50 = serializers.FloatField()
    p95 = serializers.FloatField()
    p99 = serializers.FloatField()


class AttemptCountsSerializer(Serializer):
    """The attempts in a period, by outcome."""

    attempts = serializers.IntegerField()
    delivered = serializers.IntegerField()
    failures = FailuresSerializer()
    duration_ms = PercentilesSerializer(
        allow_null=True, help_text="Duration of the attempts; null if there were none."
    )
    latency_ms = PercentilesSerializer(
        allow_null=True,
        help_text="Time from the append of an event to the acknowledgement of its delivery, without"
        " deliveries that were sent again and without examples; null if there were none.",
    )


class StatisticsPointSerializer(AttemptCountsSerializer):
    """A minute or an hour."""

    starts_at = MomentField()
    pending = serializers.IntegerField(
        help_text="The largest number of pending deliveries that was counted."
    )


class EndpointStatisticsSerializer(Serializer):
    endpoint = serializers.IntegerField()
    step = serializers.ChoiceField(choices=_STEPS)
    step_s = serializers.IntegerField(help_text="The length of a point, in seconds.")
    pending = serializers.IntegerField(
        allow_null=True,
        help_text=f"Pending deliveries now; from {limits.OVERVIEW_PENDING_MAX} on the largest"
        " number that was counted in this minute or the one before. Null: not counted in time.",
    )
    total = AttemptCountsSerializer(help_text="The sum of all points.")
    points = StatisticsPointSerializer(
        many=True, help_text="The oldest first, without a gap; the last one is the present one."
    )


class AttemptStatistics(OwnedView):
    """The attempts at an endpoint over time."""

    unknown = UnknownEndpoint
    lookup_url_kwarg = "endpoint"
    queryset = Endpoint.objects.all()
    serializer_class = EndpointStatisticsSerializer

    @operation(
        "Show the attempts at an endpoint over time, with their latency",
        errors.InvalidField,
        parameters=(_STEP,),
    )
    def get_object(self) -> dict[str, Any]:
        step = self.request.query_params.get("step", _STEPS[0])
        if step not in _STEPS:
            raise errors.InvalidField(f"This must be one of {', '.join(_STEPS)}.", field="step")
        endpoint = super().get_object()
        return selectors.statistics_of(endpoint_id=endpoint.pk, step=step)
