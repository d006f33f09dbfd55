"""Serializers of applications and groups. Django module."""

from typing import Any

from rest_framework import serializers

from eventhub.api.fields import OneOfField, StrictField, TextField, WholeField
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.applications.models import Application, ApplicationGroup, State
from eventhub.applications.names import valid_application
from eventhub.base import limits

_STATE = (
    "online: it works. degraded: it works inefficiently. faulted: it does not work. offline: it is"
    " not running."
)


class ReportSerializer(Serializer):
    state = OneOfField(choices=State.values, help_text=_STATE)
    reason = TextField(
        default="",
        allow_blank=True,
        max_length=limits.APPLICATION_REASON_CHARS_MAX,
        help_text="Why it is in this state.",
    )


class MonitorSerializer(Serializer):
    timeout_s = WholeField(
        min_value=limits.HEARTBEAT_TIMEOUT_S_MIN,
        max_value=limits.HEARTBEAT_TIMEOUT_S_MAX,
        help_text="The seconds after a heartbeat in which the next one is expected.",
    )


class ApplicationSerializer(AnswerSerializer):
    class Meta:
        model = Application
        fields = (
            *("name", "state", "reason", "since", "reported_state", "reported_reason"),
            *("reported_at", "heartbeat_at", "timeout_s", "created_at"),
        )


class ApplicationsField(StrictField, serializers.ListField):
    """Names of applications; order and repetition do not count."""

    kind = list
    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a list of names.",
        "max_length": "At most {max_length:,} names are allowed.",
        "min_length": "Name at least one application.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(
            child=TextField(max_length=limits.NAME_CHARS_MAX),
            min_length=1,
            max_length=limits.APPLICATION_GROUP_MEMBERS_MAX,
            **options,
        )

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        names = super().to_internal_value(data)
        for at, name in enumerate(names):
            valid_application(name, field=f"{self.field_name}.{at}")
        return tuple(dict.fromkeys(names))


class NewApplicationGroupSerializer(Serializer):
    applications = ApplicationsField(help_text="The names of its members.")


class ApplicationGroupSerializer(AnswerSerializer):
    state = serializers.ChoiceField(
        choices=State.values,
        help_text="online or offline: all members are. faulted: all are faulted or offline."
        " degraded: otherwise.",
    )
    applications = serializers.ListField(
        child=serializers.CharField(), help_text="The names of its members, ascending."
    )

    class Meta:
        model = ApplicationGroup
        fields = ("name", "state", "since", "applications", "created_at")
