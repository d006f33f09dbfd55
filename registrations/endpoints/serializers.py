"""Serializers of the credentials and the circuits of endpoints. Secrets are never part of an
answer. Django module.
"""

import json
import re
from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import MomentField, OneOfField, StrictField, TextField
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import limits
from eventhub.base.strict_json import printable
from registrations.endpoints import certificates
from registrations.endpoints.circuit import CircuitState
from registrations.endpoints.credentials import SECRET_FIELDS
from registrations.endpoints.fields import UrlField
from registrations.endpoints.own_headers import InvalidHeader, check_header
from registrations.models import Circuit

_TOKEN = re.compile(r"[!-~]+")
_REQUIRED = {
    "basic": ("username", "password"),
    "bearer": ("token",),
    "oauth2_client_credentials": ("token_url", "client_id", "client_secret"),
    "access_key": ("access_key_id", "secret_access_key"),
}
_OPTIONAL = {"oauth2_client_credentials": ("scopes", "audience", "client_authentication")}
_OF = "Of `oauth2_client_credentials`: "


class CredentialField(TextField):
    """A text without control characters."""

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "control": "This must not contain control characters."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=limits.ENDPOINT_CREDENTIAL_CHARS_MAX, **options)

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if not text.isprintable():
            self.fail("control")
        return text


class TokenField(CredentialField):
    """A text of printable ASCII characters without spaces."""

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "token": "This must be printable ASCII characters without spaces."
    }

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not _TOKEN.fullmatch(text):
            self.fail("token")
        return text


@extend_schema_field({"type": "object", "additionalProperties": {"type": ["string", "null"]}})
class HeadersField(StrictField, serializers.DictField):
    """Headers by name; null removes one."""

    kind = dict
    default_error_messages = {"invalid": "This must be an object."}  # noqa: RUF012

    def to_internal_value(self, data: Any) -> Any:
        if type(data) is not dict:
            self.fail("invalid")
        for name, value in data.items():
            if value is not None and not isinstance(value, str):
                message = "This must be a string, or null."
                raise serializers.ValidationError({printable(name): message})
            try:
                check_header(name, "-" if value is None else value)
            except InvalidHeader as error:
                raise serializers.ValidationError({printable(name): str(error)}) from None
        if len({name.lower() for name in data}) < len(data):
            raise serializers.ValidationError("A header is given twice, in upper and lower case.")
        return data


class AuthenticationSerializer(Serializer):
    """How callbacks authenticate. `type` says which other fields there are."""

    type = OneOfField(choices=tuple(_REQUIRED))
    username = CredentialField(help_text="Of `basic`; without a colon.")
    password = CredentialField(help_text="Of `basic`.", allow_blank=True)
    token = TokenField(help_text="Of `bearer`.")
    token_url = UrlField(required=False, help_text=f"{_OF}the URL that issues access tokens.")
    client_id = CredentialField(help_text=f"{_OF}the client's id there.")
    client_secret = CredentialField(help_text=f"{_OF}the client's secret there.")
    access_key_id = TokenField(help_text="Of `access_key`, for the kind `s3`.")
    secret_access_key = TokenField(help_text="Of `access_key`.")
    scopes = serializers.ListField(
        child=TokenField(),
        required=False,
        max_length=limits.ENDPOINT_SCOPES_MAX,
        help_text=f"{_OF}the scopes to request; none by default.",
    )
    audience = CredentialField(help_text=f"{_OF}the `audience` to request; none by default.")
    client_authentication = OneOfField(
        choices=("basic", "body"),
        required=False,
        help_text=f"{_OF}where the client's id and secret are sent: in a header (the default), or"
        " in the body.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "type" not in attrs:  # in a change, which DRF takes for partial
            raise serializers.ValidationError({"type": "Missing."}, "required")
        kind = attrs["type"]
        for name in _REQUIRED[kind]:
            if name not in attrs:
                raise serializers.ValidationError({name: "Missing."}, "required")
        for name in attrs.keys() - {"type", *_REQUIRED[kind], *_OPTIONAL.get(kind, ())}:
            raise serializers.ValidationError({name: "Unknown."}, "unknown_field")
        if ":" in attrs.get("username", ""):
            raise serializers.ValidationError({"username": "This must not contain a colon."})
        if kind == "oauth2_client_credentials":
            attrs.setdefault("client_authentication", "basic")
        return attrs


class TlsSerializer(Serializer):
    """The certificates of the connection to an endpoint, in PEM."""

    certificate = TextField(
        required=False,
        max_length=limits.ENDPOINT_PEM_CHARS_MAX,
        help_text="The client certificate, followed by its chain.",
    )
    private_key = TextField(
        required=False,
        max_length=limits.ENDPOINT_PEM_CHARS_MAX,
        help_text="Its private key, without a password.",
    )
    ca = TextField(
        required=False,
        max_length=limits.ENDPOINT_PEM_CHARS_MAX,
        help_text="The authorities that may sign the server's certificate, instead of the public"
        " ones.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        found = {"certificate": "", "private_key": "", "ca": ""} | attrs
        for name, other in (("certificate", "private_key"), ("private_key", "certificate")):
            if found[name] and not found[other]:
                raise serializers.ValidationError({other: "Missing."}, "required")
        if not found["certificate"] and not found["ca"]:
            raise serializers.ValidationError({"certificate": "Missing."}, "required")
        for name in ("certificate", "ca"):
            if found[name]:
                certificate = self._checked(name, certificates.read_certificates, found[name])[0]
                self._checked(name, certificates.describe, found[name])
                if name == "certificate":
                    key = found["private_key"]
                    self._checked("private_key", certificates.check_private_key, certificate, key)
        self._checked("certificate", certificates.tls_context, *found.values())
        return found

    def _checked(self, name: str, check: Any, *args: Any) -> Any:
        try:
            return check(*args)
        except ValueError as error:
            raise serializers.ValidationError({name: str(error)}) from None


# --- what is shown ---


class SetHeaderSerializer(Serializer):
    name = serializers.CharField()
    digest = serializers.CharField(help_text="The end of a keyed digest of its value.")


class SetAuthenticationSerializer(Serializer):
    """An authentication without its secret."""

    type = serializers.ChoiceField(choices=tuple(_REQUIRED))
    username = serializers.CharField(required=False)
    token_url = serializers.CharField(required=False)
    client_id = serializers.CharField(required=False)
    access_key_id = serializers.CharField(required=False)
    scopes = serializers.ListField(child=serializers.CharField(), required=False)
    audience = serializers.CharField(required=False)
    client_authentication = serializers.ChoiceField(choices=("basic", "body"), required=False)
    digest = serializers.CharField(
        help_text=f"The end of a keyed digest of its secret ({', '.join(SECRET_FIELDS.values())})."
    )


class CertificateSerializer(Serializer):
    subject = serializers.CharField()
    issuer = serializers.CharField()
    serial_number = serializers.CharField(help_text="In hexadecimal digits.")
    not_before = MomentField()
    not_after = MomentField()
    sha256 = serializers.CharField(help_text="The fingerprint.")


class SetTlsSerializer(Serializer):
    certificate = CertificateSerializer(allow_null=True)
    ca = CertificateSerializer(many=True)


class _ShownField(serializers.Field):
    """What is shown of a credential, from its stored JSON."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **options)

    def to_representation(self, value: str) -> Any:
        return json.loads(value)


@extend_schema_field(SetHeaderSerializer(many=True))
class ShownHeadersField(_ShownField):
    """The names of the headers."""


@extend_schema_field(SetAuthenticationSerializer)
class ShownAuthenticationField(_ShownField):
    """The authentication."""


@extend_schema_field(SetTlsSerializer)
class ShownTlsField(_ShownField):
    """The certificates."""


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
