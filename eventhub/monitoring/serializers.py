"""Serializers of members and of monitoring. Django module."""

from eventhub.access.models import Zone
from eventhub.api.fields import FlagField
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.monitoring.models import Member

_PRESENCE = "Whether clients that connect and disconnect are events of `eventhub.presence`."
_TRACES = "Whether API calls are events of `eventhub.traces`."


class MemberSerializer(AnswerSerializer):
    class Meta:
        model = Member
        fields = ("id", "kind", "node", "pid", "version", "started_at", "last_seen_at")


class MonitoringSerializer(AnswerSerializer):
    """What of a zone becomes an event."""

    class Meta:
        model = Zone
        fields = ("presence", "traces")
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "presence": {"help_text": _PRESENCE},
            "traces": {"help_text": _TRACES},
        }


class MonitoringChangeSerializer(Serializer):
    presence = FlagField(required=False, help_text=_PRESENCE)
    traces = FlagField(required=False, help_text=_TRACES)
