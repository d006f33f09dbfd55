"""The shapes of the endpoints' bodies and answers."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import MomentField, NameField, TextField
from eventhub.access.shapes import AnswerSerializer, ChangedSerializer, ModelSerializer
from registrations.endpoints import secrets
from registrations.endpoints.callback_url import valid_url
from registrations.endpoints.health import State
from registrations.endpoints.services import callback_addresses
from registrations.errors import RefusedAddress
from registrations.models import Endpoint, EndpointHealth

_FORMAT = {"help_text": "Of the body: the hub's own, or a CloudEvent in structured or binary mode."}
_TEXT = {"max_length": limits.TEXT_CHARS_MAX, "allow_blank": True}


class UrlField(TextField):
    """Where the hub may call."""

    raises = (RefusedAddress,)

    def to_internal_value(self, data: Any) -> str:
        return valid_url(data, callback_addresses(), field=self.field_name or "url")


class SecretField(TextField):
    """The text of a secret; its value is the bytes."""

    default_error_messages = {"invalid_secret": "{reason}"}  # noqa: RUF012 (DRF's own form)

    def to_internal_value(self, data: Any) -> Any:
        try:
            return secrets.parse_secret(super().to_internal_value(data))
        except ValueError as error:
            return self.fail("invalid_secret", reason=str(error))


class NewEndpointSerializer(ModelSerializer):
    url = UrlField(help_text="http or https; not to a private address.")
    client = NameField(
        required=False, help_text="Whose it is; a key's own client if it is not given."
    )
    secret = SecretField(
        required=False, help_text="`whsec_` and base64 of 24 to 64 bytes; the hub makes one if not."
    )

    class Meta:
        model = Endpoint
        fields = ("url", "description", "ordered", "format", "client", "secret")
        extra_kwargs = {"description": _TEXT, "format": _FORMAT}  # noqa: RUF012 (DRF's own form)


class EndpointChangeSerializer(ModelSerializer):
    url = UrlField(required=False)

    class Meta:
        model = Endpoint
        fields = ("url", "description", "ordered", "format", "enabled")
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "description": _TEXT,
            "format": _FORMAT,
            "enabled": {"help_text": "While it is false, deliveries wait."},
        }


class EndpointHealthSerializer(AnswerSerializer):
    """How the endpoint answers; the times are right to some seconds."""

    state = serializers.SerializerMethodField()
    last_attempt_at = MomentField(source="attempted_at", allow_null=True)
    outcome = serializers.CharField(
        allow_null=True, help_text="Of the last attempt, as a delivery's attempts have it."
    )

    class Meta:
        model = EndpointHealth
        fields = ("state", "last_attempt_at", "outcome", "status", "delivered_at", "failing_since")

    @extend_schema_field(
        serializers.ChoiceField(
            choices=get_args(State), help_text="Of the last attempt; `untried`: there was none yet."
        )
    )
    def get_state(self, endpoint: Endpoint) -> str:
        if endpoint.attempted_at is None:
            return "untried"
        return "ok" if endpoint.failing_since is None else "failing"


class EndpointSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    health = EndpointHealthSerializer(source="*")

    class Meta:
        model = Endpoint
        fields: tuple[str, ...] = (
            *("id", "client", "url", "description", "ordered", "format", "enabled", "reason"),
            *("health", "created_at", "changed_at", "changed"),
        )
        extra_kwargs = {"format": _FORMAT}  # noqa: RUF012 (DRF's own form)


class MadeEndpointSerializer(EndpointSerializer):
    shown_once = True
    secret = serializers.CharField(
        source="secret_text", help_text="Signs the callbacks. It is shown this once."
    )

    class Meta(EndpointSerializer.Meta):
        fields = (*EndpointSerializer.Meta.fields, "secret")
