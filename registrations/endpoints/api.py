"""The API of endpoints, the URLs to which the hub posts events. Django module."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import MomentField, NameField, StrictField, TextField, WholeField
from eventhub.api.resource import operation
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, ModelSerializer
from eventhub.base import errors, limits
from registrations.endpoints import secrets, services
from registrations.endpoints.callback_url import valid_url
from registrations.endpoints.circuit import CircuitState
from registrations.endpoints.health import HealthState
from registrations.errors import EndpointInUse, RefusedAddress, UnknownEndpoint
from registrations.models import Circuit, Endpoint, EndpointHealth
from registrations.resource import OwnedView

_FORMAT = {"help_text": "Of the body: the hub's own, or CloudEvents in structured or binary mode."}


class UrlField(TextField):
    """A URL that the hub may call."""

    raises = (RefusedAddress,)

    def to_internal_value(self, data: Any) -> str:
        addresses = services.callback_addresses(self.context["view"].actor.zone)
        return valid_url(data, addresses, field=self.field_name or "url")


class SecretField(TextField):
    """The text of a secret; its value is in bytes."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return secrets.parse_secret(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class RetryScheduleField(StrictField, serializers.ListField):
    """The pauses before retries, in seconds; null: the default."""

    kind = list
    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a list of pauses in seconds.",
        "max_length": "At most {max_length:,} pauses are allowed.",
        "total": "These pauses are {total:,} s together; at most {max:,} s are allowed.",
    }

    def __init__(self, **options: Any) -> None:
        pause = WholeField(min_value=1, max_value=limits.CALLBACK_RETRY_S_MAX)
        bounds = {"child": pause, "max_length": limits.CALLBACK_RETRIES_MAX}
        super().__init__(**bounds, allow_null=True, required=False, **options)

    def to_internal_value(self, data: Any) -> list[int]:
        pauses: list[int] = super().to_internal_value(data)
        total = sum(pauses)
        if total > limits.CALLBACK_RETRY_TOTAL_S_MAX:
            self.fail("total", total=total, max=limits.CALLBACK_RETRY_TOTAL_S_MAX)
        return pauses


class RateField(StrictField, serializers.FloatField):
    """Requests per second, a JSON number; null: unlimited."""

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a number.",
        "max_value": "This may be at most {max_value:,}.",
        "min_value": "This must be at least {min_value:,}.",
    }

    def __init__(self, **options: Any) -> None:
        bounds = {
            "min_value": limits.CALLBACK_RATE_MIN,
            "max_value": limits.CALLBACK_RATE_MAX,
        }
        super().__init__(**bounds, allow_null=True, required=False, **options)

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return float(data)


class DisableAfterField(WholeField):
    """A time in seconds, 0 for never, null for the default."""

    def __init__(self, **options: Any) -> None:
        maximum = limits.CALLBACK_DISABLE_AFTER_S_MAX
        super().__init__(min_value=0, max_value=maximum, allow_null=True, required=False, **options)

    def to_internal_value(self, data: Any) -> int:
        seconds: int = super().to_internal_value(data)
        if 0 < seconds < limits.CALLBACK_DISABLE_AFTER_S_MIN:
            self.fail("min_value", min_value=limits.CALLBACK_DISABLE_AFTER_S_MIN)
        return seconds


class EndpointChangeSerializer(ModelSerializer):
    url = UrlField(help_text="An http or https URL that does not lead to a private address.")
    retry_schedule = RetryScheduleField(
        help_text="Pauses before the first retry, the second and so on, in seconds; null: the"
        " default, some three days."
    )
    rate_limit = RateField(
        help_text="Requests per second at most, of all workers; null: unlimited."
    )
    concurrency = WholeField(
        min_value=1,
        max_value=limits.CALLBACK_CONCURRENCY_MAX,
        allow_null=True,
        required=False,
        help_text="Requests at a time at most, of all workers; null: unlimited.",
    )
    timeout_s = WholeField(
        min_value=1,
        max_value=limits.CALLBACK_OWN_TIMEOUT_S_MAX,
        allow_null=True,
        required=False,
        help_text="Seconds after which a missing answer is a failure; null: 12.",
    )
    disable_after_s = DisableAfterField(
        help_text="Seconds of failing without a success after which the hub disables it; 0: never;"
        " null: the default, five days."
    )

    class Meta:
        model = Endpoint
        fields: tuple[str, ...] = (
            *("url", "description", "ordered", "format", "enabled"),
            *services.RETRIES,
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "description": {"max_length": limits.TEXT_CHARS_MAX, "allow_blank": True},
            "format": _FORMAT,
            "enabled": {"help_text": "While it is false, deliveries stay pending."},
        }


class NewEndpointSerializer(EndpointChangeSerializer):
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    secret = SecretField(
        required=False, help_text="`whsec_` and base64 of 24 to 64 bytes; by default generated."
    )

    class Meta(EndpointChangeSerializer.Meta):
        fields = (
            *("url", "description", "ordered", "format", "client", "secret"),
            *services.RETRIES,
        )


class EndpointHealthSerializer(AnswerSerializer):
    """The health of an endpoint; times are accurate to some seconds."""

    state = serializers.SerializerMethodField()
    last_attempt_at = MomentField(source="attempted_at", allow_null=True)
    outcome = serializers.CharField(
        allow_null=True, help_text="Of the last attempt, as in a delivery's attempts."
    )

    class Meta:
        model = EndpointHealth
        fields = ("state", "last_attempt_at", "outcome", "status", "delivered_at", "failing_since")

    @extend_schema_field(
        serializers.ChoiceField(
            choices=get_args(HealthState),
            help_text="By the last attempt; `untried`: there was no attempt yet.",
        )
    )
    def get_state(self, endpoint: Endpoint) -> str:
        if endpoint.attempted_at is None:
            return "untried"
        return "ok" if endpoint.failing_since is None else "failing"


class CircuitSerializer(AnswerSerializer):
    """The circuit breaker of an endpoint."""

    state = serializers.ChoiceField(choices=get_args(CircuitState), source="circuit_state")
    failures = serializers.IntegerField(
        source="circuit_failures", help_text="Failed attempts in a row."
    )
    since = MomentField(
        source="circuit_since", allow_null=True, help_text="When it opened; null while closed."
    )
    next_probe_at = MomentField(
        source="circuit_next_probe_at",
        allow_null=True,
        help_text="When the next request may be sent; null unless it is open.",
    )

    class Meta:
        model = Circuit
        fields = ("state", "failures", "since", "next_probe_at")


class EndpointSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    health = EndpointHealthSerializer(source="*")
    circuit = CircuitSerializer(source="*")

    class Meta:
        model = Endpoint
        fields: tuple[str, ...] = (
            *("id", "client", "url", "description", "ordered", "format", "enabled", "reason"),
            *services.RETRIES,
            *("health", "circuit", "created_at", "changed_at", "changed"),
        )
        extra_kwargs = {"format": _FORMAT}  # noqa: RUF012 (DRF's own form)


class CreatedEndpointSerializer(EndpointSerializer):
    has_secret = True
    secret = serializers.CharField(
        source="secret_text", help_text="Signs the callbacks. It is shown only once."
    )

    class Meta(EndpointSerializer.Meta):
        fields = (*EndpointSerializer.Meta.fields, "secret")


class Endpoints(OwnedView):
    """The endpoints of a client, or of all clients of a zone. Another client's is not found."""

    noun = "an endpoint", "endpoints"
    kind = "endpoint"
    unknown = UnknownEndpoint
    lookup_url_kwarg = "endpoint"
    queryset = services.ENDPOINTS
    serializer_class = EndpointSerializer
    listed = (
        *("pk", "id", "client_name", "url", "description", "ordered", "format", "enabled"),
        *("reason", "created_at", "changed_at", *services.RETRIES, *services.HEALTH),
        *services.CIRCUIT,
    )

    @operation(
        "Create an endpoint; its secret is shown only once",
        errors.LimitReached,
        body=NewEndpointSerializer,
        response=CreatedEndpointSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Endpoint:
        owner, fields = self.owner(body), services.NewEndpoint(**body)
        return services.create_endpoint(actor=self.actor, owner=owner, fields=fields)

    @operation("Change an endpoint, disable or enable it", body=EndpointChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> Endpoint:
        with self.changing() as endpoint:
            return services.change_endpoint(actor=self.actor, endpoint=endpoint, given=body)

    @operation("Delete an endpoint that no registration names", EndpointInUse)
    def perform_destroy(self) -> None:
        with self.changing() as endpoint:
            services.delete_endpoint(actor=self.actor, endpoint=endpoint)
