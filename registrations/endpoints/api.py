"""The API of endpoints, the URLs to which the hub posts events. Django module."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import MomentField, NameField, OneOfField, WholeField
from eventhub.api.resource import operation
from eventhub.api.serializers import (
    AnswerSerializer,
    ChangedSerializer,
    EmptySerializer,
    ModelSerializer,
)
from eventhub.base import errors, limits
from registrations.endpoints import services
from registrations.endpoints.credentials import KINDS
from registrations.endpoints.delivery_fields import BATCH_COLUMNS, BatchSerializer, OrderKeyField
from registrations.endpoints.fields import (
    DisableAfterField,
    ExpiryField,
    RateField,
    ReceiverUrlField,
    RetryScheduleField,
    SecretField,
)
from registrations.endpoints.health import HealthState
from registrations.endpoints.serializers import (
    AuthenticationSerializer,
    CircuitSerializer,
    HeadersField,
    ShownAuthenticationField,
    ShownHeadersField,
    ShownTlsField,
    TlsSerializer,
)
from registrations.errors import (
    CredentialsBound,
    CredentialsUnreadable,
    EndpointInUse,
    EndpointUnverified,
    NoHandshake,
    UnknownEndpoint,
)
from registrations.models import Endpoint, EndpointHealth, EndpointVerification
from registrations.resource import OwnedView
from registrations.sinks.fields import new_fields
from registrations.sinks.registry import KINDS as SINK_KINDS
from registrations.sources.serializers import PlainObjectField

_FORMAT = {
    "help_text": "Of the body: the hub's own, CloudEvents in structured or binary mode, or an"
    " occurrence of MCP Events."
}
_HANDSHAKE = {
    "help_text": "How the receiver must agree before the first callback: to the OPTIONS request of"
    " CloudEvents' webhooks, or by echoing a challenge (`mcp`: that of MCP Events)."
}

_KIND = {"help_text": "`https`: events are posted; else the sink in which they are stored."}
_SETTINGS = {"help_text": "The settings of its kind of sink: see docs/sinks.md."}
_SIGNATURE = {
    "help_text": "Of the callbacks: `v1` (HMAC-SHA256 with the secret), `v1a` (Ed25519, verified"
    " with the public key) or `both`."
}


class EndpointChangeSerializer(ModelSerializer):
    url = ReceiverUrlField(
        help_text="An http or https URL that does not lead to a private address, or the URL of a"
        " sink by its kind, without credentials."
    )
    settings = PlainObjectField(required=False, **_SETTINGS)
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
    expires_at = ExpiryField(
        required=False,
        allow_null=True,
        help_text="When the hub ends the registrations that name the endpoint, and deletes it;"
        " null: never.",
    )
    order_by = OrderKeyField(required=False)
    batch = BatchSerializer(required=False, allow_null=True, source="*")
    headers = HeadersField(
        required=False,
        allow_null=True,
        help_text="Headers of callbacks, by name. A change sets the given ones and leaves the"
        " others; null removes one, or all.",
    )
    authentication = AuthenticationSerializer(required=False, allow_null=True)
    tls = TlsSerializer(required=False, allow_null=True)

    class Meta:
        model = Endpoint
        fields: tuple[str, ...] = (
            *("url", "settings", "description", "ordered", "order_by", "format", "batch"),
            *("signature", "handshake", "enabled", *KINDS),
            *(*services.RETRIES, "expires_at"),
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "description": {"max_length": limits.TEXT_CHARS_MAX, "allow_blank": True},
            "format": _FORMAT,
            "handshake": _HANDSHAKE,
            "signature": _SIGNATURE,
            "enabled": {"help_text": "While it is false, deliveries stay pending."},
        }


class NewEndpointSerializer(EndpointChangeSerializer):
    kind = OneOfField(choices=SINK_KINDS, required=False, **_KIND)
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    secret = SecretField(
        required=False, help_text="`whsec_` and base64 of 24 to 64 bytes; by default generated."
    )

    class Meta(EndpointChangeSerializer.Meta):
        fields = (
            *("kind", "url", "settings", "description", "ordered", "order_by", "format", "batch"),
            *("signature", "handshake", "client", "secret", *KINDS),
            *(*services.RETRIES, "expires_at"),
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


class EndpointVerificationSerializer(AnswerSerializer):
    """The last verification of an endpoint, in which its receiver was asked to agree."""

    state = serializers.SerializerMethodField()
    requested_at = MomentField(source="verification_requested_at", allow_null=True)
    ended_at = MomentField(source="verification_ended_at", allow_null=True)
    outcome = serializers.CharField(
        source="verification_outcome",
        allow_null=True,
        help_text="`verified`, `refused`, or why there was no answer, as in a delivery's attempts.",
    )
    status = serializers.IntegerField(
        source="verification_status", allow_null=True, help_text="HTTP status of the answer."
    )
    detail = serializers.CharField(
        source="verification_detail", allow_null=True, help_text="What was wrong with the answer."
    )

    class Meta:
        model = EndpointVerification
        fields = ("state", "requested_at", "ended_at", "outcome", "status", "detail")

    @extend_schema_field(
        serializers.ChoiceField(
            choices=["none", "pending", "verified", "failed"],
            help_text="`none`: no verification was requested.",
        )
    )
    def get_state(self, endpoint: Endpoint) -> str:
        if endpoint.verification_requested_at is None:
            return "none"
        if endpoint.verification_ended_at is None:
            return "pending"
        return "verified" if endpoint.verification_outcome == "verified" else "failed"


class EndpointSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    kind = serializers.ChoiceField(choices=SINK_KINDS, **_KIND)
    settings = serializers.DictField(**_SETTINGS)
    batch = BatchSerializer(allow_null=True, source="*")
    public_key = serializers.CharField(
        allow_null=True,
        help_text="The current key of `v1a`, `whpk_` and base64; null until it is first used.",
    )
    headers = ShownHeadersField(source="headers_shown")
    authentication = ShownAuthenticationField(source="authentication_shown")
    tls = ShownTlsField(source="tls_shown")
    health = EndpointHealthSerializer(source="*")
    circuit = CircuitSerializer(source="*")
    verification = EndpointVerificationSerializer(source="*")

    class Meta:
        model = Endpoint
        fields: tuple[str, ...] = (
            *("id", "client", "kind", "url", "settings", "description"),
            *("ordered", "order_by", "format", "batch"),
            *("signature", "public_key", *KINDS, *services.RETRIES, "enabled", "reason"),
            *("handshake", "verification", "verified_at", "allowed_rate", "health", "circuit"),
            *("expires_at", "created_at", "changed_at", "changed"),
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "format": _FORMAT,
            "signature": _SIGNATURE,
            "handshake": _HANDSHAKE,
            "verified_at": {"help_text": "When the receiver at this URL agreed last."},
            "allowed_rate": {
                "help_text": "Requests per minute that the receiver agreed to; null: no bound."
            },
        }


class CreatedEndpointSerializer(EndpointSerializer):
    has_secret = True
    secret = serializers.CharField(
        source="secret_text",
        allow_null=True,
        help_text="Signs the callbacks. It is shown only once. Null: of a sink.",
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
        *(
            "pk",
            "id",
            "client_name",
            "kind",
            "url",
            "settings",
            "description",
            "ordered",
            "order_by",
            "format",
        ),
        *(*BATCH_COLUMNS, "signature", "public_key", "enabled", "reason", "handshake"),
        *("verified_at", "allowed_rate", "expires_at", "created_at", "changed_at"),
        *(*services.HEALTH, *services.SHOWN),
        *(f"verification_{name}" for name in services.VERIFICATION),
        *(*services.RETRIES, *services.CIRCUIT),
    )

    @operation(
        "Create an endpoint; its secret is shown only once",
        errors.LimitReached,
        body=NewEndpointSerializer,
        response=CreatedEndpointSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Endpoint:
        owner = self.owner(body)
        body = new_fields(body, self.request.data, services.callback_addresses(self.actor.zone))
        credentials = {name: body.pop(name) for name in KINDS if name in body}
        fields = services.NewEndpoint(**body, credentials=credentials)
        return services.create_endpoint(actor=self.actor, owner=owner, fields=fields)

    @operation(
        "Change an endpoint, disable or enable it",
        EndpointUnverified,
        CredentialsBound,
        CredentialsUnreadable,
        body=EndpointChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Endpoint:
        with self.changing() as endpoint:
            return services.change_endpoint(actor=self.actor, endpoint=endpoint, given=body)

    @operation("Delete an endpoint that no registration names", EndpointInUse)
    def perform_destroy(self) -> None:
        with self.changing() as endpoint:
            services.delete_endpoint(actor=self.actor, endpoint=endpoint)


class VerifiedEndpoint(Endpoints):
    """The verification of an endpoint, which a worker performs."""

    @operation(
        "Ask the receiver of an endpoint again whether it agrees to callbacks",
        NoHandshake,
        errors.TooManyRequests,
        body=EmptySerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Endpoint:
        with self.changing() as endpoint:
            return services.verify_endpoint(actor=self.actor, endpoint=endpoint)
