"""Serializers of timers. Django module."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import (
    FlagField,
    MomentField,
    NameField,
    ObjectField,
    TextField,
    WholeField,
)
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import limits
from registrations.timers import selectors
from registrations.timers.models import Timer

_SUSPENDED = (
    "While it is true, the timer does not fire. When it is false again, a repeating timer goes on"
    " with its next time; a single time that has passed fires at once."
)


@extend_schema_field({"$ref": "#/components/schemas/EventIn"})
class EventField(ObjectField):
    """An event, as the emit route takes it."""


class TimerChangeSerializer(Serializer):
    suspended = FlagField(required=False, help_text=_SUSPENDED)


class NewTimerSerializer(TimerChangeSerializer):
    stream = NameField(help_text="The stream to which the event is appended.")
    handle = NameField(
        help_text="Unique among the timers of the registration; without a `registration`, among"
        " those of the client."
    )
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    registration = WholeField(
        required=False,
        min_value=1,
        help_text="A registration of the client on the stream; the timer is deleted with it.",
    )
    at = MomentField(
        required=False, help_text="It fires once, at this time; at once if it has passed."
    )
    after_s = WholeField(
        required=False,
        min_value=0,
        max_value=limits.TIMER_AHEAD_S_MAX,
        help_text="It fires once, so many seconds after the request, or after `from`.",
    )
    vars()["from"] = MomentField(
        required=False, help_text="The time to which `after_s` is added, instead of the request's."
    )
    every_s = WholeField(
        required=False,
        min_value=limits.TIMER_EVERY_S_MIN,
        max_value=limits.TIMER_EVERY_S_MAX,
        help_text="It fires repeatedly, at this interval.",
    )
    start = MomentField(
        required=False,
        help_text="The first time of an interval, by default one interval after the request; a cron"
        " expression matches no time before.",
    )
    end = MomentField(required=False, help_text="It does not fire after this time.")
    cron = TextField(
        required=False,
        max_length=limits.TIMER_CRON_CHARS_MAX,
        help_text="It fires whenever the expression matches: minute, hour, day of month, month, day"
        " of week.",
    )
    timezone = TextField(
        required=False,
        max_length=limits.NAME_CHARS_MAX,
        help_text="The time zone of `cron`, such as Europe/Berlin; by default UTC.",
    )
    event = EventField(
        required=False,
        help_text="The event to append; without one it is Time::Tick for the client.",
    )


class TimerSerializer(AnswerSerializer):
    client = serializers.CharField(source="client_name")
    registration = serializers.IntegerField(
        source="registration_id",
        allow_null=True,
        help_text="The registration that it is deleted with; null: none.",
    )
    stream = serializers.CharField(source="stream_name")
    handle = serializers.CharField(
        allow_null=True, help_text="Its name; null: a delayed event, which an emit stored."
    )
    event = serializers.SerializerMethodField(help_text="The event to append; null: Time::Tick.")
    suspended = serializers.BooleanField(help_text=_SUSPENDED)
    next_at = MomentField(help_text="The time for which it fires next.")
    upcoming = serializers.SerializerMethodField(
        help_text=f"The next {limits.TIMER_UPCOMING} times; none while it is suspended."
    )

    class Meta:
        model = Timer
        fields = (
            *("id", "client", "registration", "stream", "handle", "at", "every_s", "start", "end"),
            *("cron", "timezone", "event", "suspended", "next_at", "upcoming", "fired", "fired_at"),
            "created_at",
        )

    def get_event(self, timer: Timer) -> dict[str, Any] | None:
        return selectors.event_of(timer)

    @extend_schema_field(serializers.ListField(child=MomentField()))
    def get_upcoming(self, timer: Timer) -> list[str]:
        as_text = MomentField().to_representation
        return [as_text(one) for one in selectors.upcoming(timer)]
