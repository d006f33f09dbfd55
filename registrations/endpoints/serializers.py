"""The shapes of the endpoints' bodies and answers."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import FlagField, NameField, StrictSerializer, TextField
from eventhub.access.serializers import ChangedSerializer
from eventhub.event.json_codec import time_text
from registrations.endpoints import secrets
from registrations.endpoints.callback_url import valid_url
from registrations.endpoints.health import Health, State
from registrations.endpoints.rows import Endpoint, Format
from registrations.endpoints.services import callback_addresses

FORMATS: tuple[str, ...] = get_args(Format)
HEALTH_STATES: tuple[str, ...] = get_args(State)
_FORMAT = "Of the body: the hub's own, or a CloudEvent in structured or in binary mode."


class UrlField(TextField):
    """Where the hub may call."""

    def to_internal_value(self, data: Any) -> str:
        return valid_url(data, callback_addresses(), field=self.field_name or "url")


class FormatField(serializers.ChoiceField):
    """One of the formats, and nothing that only looks like one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=FORMATS, **options)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return super().to_internal_value(data)


class SecretField(TextField):
    """The text of a secret; its value is the bytes."""

    default_error_messages = {"invalid_secret": "{reason}"}  # noqa: RUF012 (DRF's own form)

    def to_internal_value(self, data: Any) -> Any:
        try:
            return secrets.parse_secret(super().to_internal_value(data))
        except ValueError as error:
            return self.fail("invalid_secret", reason=str(error))


class EndpointTextSerializer(StrictSerializer):
    description = TextField(
        max_length=limits.TEXT_CHARS_MAX, required=False, allow_blank=True, default=""
    )


class NewEndpointSerializer(EndpointTextSerializer):
    url = UrlField(help_text="http or https; not to a private address.")
    ordered = FlagField(
        required=False,
        default=False,
        help_text="One delivery of a stream at a time, in the stream's order.",
    )
    format = FormatField(required=False, default="native", help_text=_FORMAT)
    client = NameField(
        required=False, help_text="Whose it is; a key's own client if it is not given."
    )
    secret = SecretField(
        required=False, help_text="`whsec_` and base64 of 24 to 64 bytes; the hub makes one if not."
    )


class EndpointChangeSerializer(StrictSerializer):
    url = UrlField(required=False)
    description = TextField(max_length=limits.TEXT_CHARS_MAX, required=False, allow_blank=True)
    ordered = FlagField(required=False)
    format = FormatField(required=False, help_text=_FORMAT)
    enabled = FlagField(required=False, help_text="While it is false, deliveries wait.")


class EndpointHealthSerializer(serializers.Serializer):
    """How the endpoint answers; the times are right to some seconds."""

    state = serializers.ChoiceField(
        choices=HEALTH_STATES,
        help_text="Of the last attempt; `untried`: there was none yet.",
    )
    last_attempt_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.CharField(
        allow_null=True, help_text="Of the last attempt, as a delivery's attempts have it."
    )
    status = serializers.IntegerField(allow_null=True, help_text="Of its answer, if there was one.")
    delivered_at = serializers.DateTimeField(
        allow_null=True, help_text="When an attempt was answered with 2xx last."
    )
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="The first attempt that failed since; null while none does."
    )


class EndpointSerializer(ChangedSerializer):
    id = serializers.IntegerField()
    client = serializers.CharField()
    url = serializers.CharField()
    description = serializers.CharField()
    ordered = serializers.BooleanField()
    format = serializers.ChoiceField(choices=FORMATS)
    enabled = serializers.BooleanField()
    reason = serializers.CharField(
        allow_null=True, help_text="Why it is not enabled: `request`, or `gone` after a 410."
    )
    health = EndpointHealthSerializer()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class MadeEndpointSerializer(EndpointSerializer):
    secret = serializers.CharField(help_text="Signs the callbacks. It is shown this once.")


def endpoint_json(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "client": endpoint.client,
        **endpoint.settings._asdict(),
        "health": _health_json(endpoint.health),
        "created_at": time_text(endpoint.created_at_us),
        "changed_at": time_text(endpoint.changed_at_us),
    }


def _health_json(health: Health) -> dict[str, Any]:
    return {
        "state": health.state,
        "last_attempt_at": _time(health.attempted_at_us),
        "outcome": health.outcome,
        "status": health.status,
        "delivered_at": _time(health.delivered_at_us),
        "failing_since": _time(health.failing_since_us),
    }


def _time(at_us: int | None) -> str | None:
    return None if at_us is None else time_text(at_us)
