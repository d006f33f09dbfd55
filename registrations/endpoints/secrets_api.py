"""The API of the secrets that sign an endpoint's callbacks. Django module."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from rest_framework import serializers

from eventhub.api.fields import MomentField, OneOfField, WholeField
from eventhub.api.filters import FilterSet
from eventhub.api.if_match import IF_MATCH, require_unchanged
from eventhub.api.resource import operation, parse_number
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import errors, limits
from eventhub.eventlog.resource_changes import Resource
from registrations.endpoints import services, signing_secrets
from registrations.endpoints.fields import SecretField
from registrations.errors import SecretInUse, UnknownEndpoint, UnknownSecret
from registrations.models import Endpoint, EndpointSecret
from registrations.resource import OwnedView


class NewSecretSerializer(Serializer):
    signature = OneOfField(
        choices=("v1", "v1a"), default="v1", help_text="Which secret is replaced."
    )
    secret = SecretField(
        required=False,
        help_text="Of `v1`: `whsec_` and base64 of 24 to 64 bytes; by default generated.",
    )
    overlap_s = WholeField(
        default=limits.ENDPOINT_SECRET_OVERLAP_S_DEFAULT,
        min_value=0,
        max_value=limits.ENDPOINT_SECRET_OVERLAP_S_MAX,
        help_text="Seconds for which the secret before it signs too; 0 revokes all before it.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["signature"] == "v1a" and "secret" in attrs:
            raise serializers.ValidationError(
                {"secret": "The hub generates the key pair of `v1a`; leave out `secret`."}
            )
        return attrs


class SecretSerializer(AnswerSerializer):
    signature = serializers.ChoiceField(choices=("v1", "v1a"), source="kind")
    public_key = serializers.CharField(
        source="public", allow_null=True, help_text="Of `v1a`: `whpk_` and base64; verifies."
    )
    expires_at = MomentField(
        allow_null=True, help_text="Until then it signs too; null: it is the current secret."
    )

    class Meta:
        model = EndpointSecret
        fields: tuple[str, ...] = ("id", "signature", "public_key", "created_at", "expires_at")


class CreatedSecretSerializer(SecretSerializer):
    has_secret = True
    secret = serializers.CharField(
        source="text",
        allow_null=True,
        help_text="Of `v1`: signs and verifies the callbacks. It is shown only once.",
    )

    class Meta(SecretSerializer.Meta):
        fields = (*SecretSerializer.Meta.fields, "secret")


class EndpointSecrets(OwnedView):
    """The secrets that sign the callbacks of an endpoint."""

    noun = "a secret", "the valid secrets of an endpoint"
    unknown = UnknownSecret
    lookup_url_kwarg = "secret"
    filterset_class = FilterSet
    queryset = EndpointSecret.objects.all()
    serializer_class = SecretSerializer

    @property
    def endpoint_id(self) -> int:
        return parse_number(self.kwargs["endpoint"], error=self.unknown_endpoint())

    def unknown_endpoint(self) -> UnknownEndpoint:
        return UnknownEndpoint(field="endpoint")

    @operation("List the valid secrets of an endpoint", UnknownEndpoint)
    def get_queryset(self) -> QuerySet[EndpointSecret]:
        if not self.visible(Endpoint.objects.all()).filter(pk=self.endpoint_id).exists():
            raise self.unknown_endpoint()
        return signing_secrets.valid_secrets(self.endpoint_id)

    @contextmanager
    def changing(self) -> Iterator[Endpoint]:
        """Lock the endpoint until the end of the block, which is a transaction. Raises
        UnknownEndpoint, Changed.
        """
        with transaction.atomic():
            rows = self.visible(services.ENDPOINTS).filter(pk=self.endpoint_id)
            if not rows.select_for_update(of=("self",)).values_list("pk"):
                raise self.unknown_endpoint()
            resource = Resource("endpoint", self.actor.zone_id, str(self.endpoint_id))
            require_unchanged(resource, self.if_match)
            yield rows.get()

    @operation(
        "Create a new secret, which is shown only once; the one before it signs too for a while",
        *(errors.LimitReached, UnknownEndpoint),
        body=NewSecretSerializer,
        response=CreatedSecretSerializer,
        parameters=(IF_MATCH,),
    )
    def perform_create(self, body: dict[str, Any]) -> EndpointSecret:
        with self.changing() as endpoint:
            return services.rotate_secret(actor=self.actor, endpoint=endpoint, **body)

    @operation(
        "Revoke a previous secret before it expires",
        *(SecretInUse, UnknownEndpoint),
        parameters=(IF_MATCH,),
    )
    def perform_destroy(self) -> None:
        with self.changing() as endpoint:
            services.revoke_secret(actor=self.actor, endpoint=endpoint, secret=self.get_object())
