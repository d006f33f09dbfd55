"""Serializers of sources. Django module."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import (
    FlagField,
    MomentField,
    NameField,
    ObjectField,
    OneOfField,
    StrictField,
    TextField,
    WholeField,
)
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import limits
from registrations.sources import selectors
from registrations.sources.models import Source, SourceSample
from registrations.sources.providers.registry import PROVIDERS

_TERM = (
    "A field's origin: one of `value` (a constant), `body` (a JSON pointer), `header`, `query`, or"
    " `join` (a list of them, with a `separator`); `default` if the request has none."
)
_MAP = {
    "type": "object",
    "description": "Where `domain`, `type`, `key`, `id`, `time` and each of `attributes` come from;"
    f" by default as usual for the provider. {_TERM}",
    "additionalProperties": {},
}
_OPTIONS = {
    "help_text": "Of `hmac`: `header`, `algorithm`, `encoding` and `prefix`; of `api-key`: `name`"
    " and `location`; of other providers none."
}
_OVERLAP = {
    "default": limits.SOURCE_OVERLAP_S_DEFAULT,
    "min_value": 0,
    "max_value": limits.SOURCE_OVERLAP_S_MAX,
}


class PlainObjectField(StrictField, ObjectField):
    """A JSON object that the service checks."""

    kind = dict
    default_error_messages = {"invalid": "This must be an object."}  # noqa: RUF012 (DRF's own form)


@extend_schema_field(_MAP)
class MapField(PlainObjectField):
    """The map of a source."""


class SourceSecretField(TextField):
    """A secret, as the provider shows it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=limits.SOURCE_SECRET_CHARS_MAX, required=False, **options)


class SourceChangeSerializer(Serializer):
    options = PlainObjectField(required=False, **_OPTIONS)
    mapping = MapField(required=False)
    enabled = FlagField(
        required=False, help_text="While it is false, requests are refused with 409."
    )


class NewSourceSerializer(SourceChangeSerializer):
    name = NameField(help_text="Unique among the sources of the client; the node of its events.")
    stream = NameField(help_text="The stream to which it emits.")
    provider = OneOfField(choices=tuple(PROVIDERS), help_text="How requests are verified.")
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    secret = SourceSecretField(
        help_text="As the provider shows it; by default the hub generates one."
    )


class SourceCountsSerializer(Serializer):
    """The numbers of requests to a source."""

    stored = serializers.IntegerField(help_text="Their events were stored.")
    repeated = serializers.IntegerField(help_text="Their events were stored before.")
    answered = serializers.IntegerField(help_text="Challenges and trials of the provider.")
    failed = serializers.IntegerField(help_text="Verified, but not stored.")
    refused = serializers.IntegerField(help_text="Not verified.")


class SourceSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    stream = serializers.CharField(source="stream_name")
    provider = serializers.ChoiceField(choices=tuple(PROVIDERS))
    options = serializers.DictField(**_OPTIONS)
    mapping = MapField()
    former_url_expires_at = MomentField(
        source="former_expires_at",
        allow_null=True,
        help_text="Until then the URL before the present one is valid too; null: there is none.",
    )
    former_secret_expires_at = MomentField(
        allow_null=True,
        help_text="Until then the secret before the present one is valid too; null: none.",
    )
    requests = SourceCountsSerializer(source="*")
    verified_at = MomentField(allow_null=True, help_text="When a request was verified last.")
    refused_at = MomentField(allow_null=True, help_text="When one was refused last.")

    class Meta:
        model = Source
        fields: tuple[str, ...] = (
            *("id", "client", "name", "stream", "provider", "options", "mapping", "enabled"),
            *("former_url_expires_at", "former_secret_expires_at", "requests", "verified_at"),
            *("refused_at", "created_at", "changed_at", "changed"),
        )


class _PathSerializer(SourceSerializer):
    has_secret = True
    path = serializers.SerializerMethodField(
        help_text="The path of the secret URL at this hub. It is shown only once."
    )

    def get_path(self, source: Source) -> str:
        return f"/v1/webhooks/{source.token}"


class CreatedSourceSerializer(_PathSerializer):
    secret = serializers.CharField(help_text="Verifies the requests. It is shown only once.")

    class Meta(SourceSerializer.Meta):
        fields = (*SourceSerializer.Meta.fields, "path", "secret")


class ReplacedUrlSerializer(_PathSerializer):
    class Meta(SourceSerializer.Meta):
        fields = (*SourceSerializer.Meta.fields, "path")


class ReplacedSecretSerializer(SourceSerializer):
    has_secret = True
    secret = serializers.CharField(
        allow_null=True,
        help_text="The generated secret, shown only once; null: it was in the request.",
    )

    class Meta(SourceSerializer.Meta):
        fields = (*SourceSerializer.Meta.fields, "secret")


class NewUrlSerializer(Serializer):
    overlap_s = WholeField(
        **_OVERLAP, help_text="Seconds for which the URL before it is valid too; 0: it ends now."
    )


class NewSourceSecretSerializer(Serializer):
    secret = SourceSecretField(
        help_text="As the provider shows it; by default the hub generates one."
    )
    overlap_s = WholeField(
        **_OVERLAP, help_text="Seconds for which the secret before it is valid too; 0: it ends now."
    )


class SourceSampleSerializer(AnswerSerializer):
    received_at = MomentField()
    outcome = serializers.ChoiceField(choices=selectors.COUNTS)

    class Meta:
        model = SourceSample
        fields: tuple[str, ...] = (
            *("id", "received_at", "verified", "outcome", "reason", "detail", "address"),
            *("sequence", "body_bytes"),
        )


class WholeSampleSerializer(SourceSampleSerializer):
    headers = serializers.DictField(child=serializers.CharField())
    body = serializers.SerializerMethodField(
        help_text=f"The first {limits.SOURCE_SAMPLE_BYTES_MAX:,} bytes of its body as text; null:"
        " the request was refused."
    )

    class Meta(SourceSampleSerializer.Meta):
        fields = (*SourceSampleSerializer.Meta.fields, "headers", "query", "body")

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_body(self, sample: SourceSample) -> str | None:
        return None if sample.body is None else bytes(sample.body).decode("utf-8", "replace")


class SourceTestSerializer(Serializer):
    mapping = MapField(required=False)
    sample = WholeField(
        required=False, min_value=1, help_text="A sample of the source, instead of the others."
    )
    headers = PlainObjectField(required=False, help_text="Headers of a request, by name.")
    query = TextField(required=False, allow_blank=True, help_text="Its query, as in a URL.")
    body = TextField(required=False, allow_blank=True, help_text="Its body.")


class MappedEventSerializer(Serializer):
    event = serializers.DictField(
        help_text="The event that the request would be, without the hub's own fields."
    )
