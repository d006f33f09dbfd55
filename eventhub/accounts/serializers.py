"""Serializers of zones, clients, channels and credentials. Django module."""

from rest_framework import serializers

from eventhub.access.models import ApiKey, Channel, Client, Zone
from eventhub.access.roles import ROLES
from eventhub.api.fields import (
    ChannelMaskField,
    GrantSerializer,
    GrantsField,
    GroupsField,
    MomentField,
    NameField,
    NetworksField,
    TextField,
    WholeField,
)
from eventhub.api.serializers import (
    AnswerSerializer,
    ChangedSerializer,
    ModelSerializer,
    Serializer,
)
from eventhub.base import limits

GRANTS = (
    'A list such as `[{"action": "listen", "streams": "orders.*"}]`; actions: emit, listen, manage.'
)

ADDRESSES = (
    "The IP addresses and networks (`10.1.0.0/16`, `2001:db8::/32`) that it may be used from; null:"
    " every address."
)


class ZoneSerializer(AnswerSerializer):
    class Meta:
        model = Zone
        fields = ("name", "deletes_at")
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "deletes_at": {"help_text": "The end of its grace period; null: no deletion."}
        }


class NewZoneSerializer(Serializer):
    name = NameField()


class ClientSerializer(ChangedSerializer, AnswerSerializer):
    groups = serializers.ListField(
        child=serializers.CharField(), help_text="Groups that an event's `audience` may name."
    )

    class Meta:
        model = Client
        fields = ("name", "groups", "created_at", "changed")


class NewClientSerializer(Serializer):
    name = NameField()
    groups = GroupsField(required=False)


class ClientChangeSerializer(Serializer):
    groups = GroupsField(required=False)


class KeySerializer(ChangedSerializer, AnswerSerializer):
    public_id = serializers.CharField(help_text="The id of the key; not secret.")
    client = serializers.CharField(source="client.name")
    grants = GrantSerializer(many=True)
    allowed_addresses = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text=ADDRESSES
    )

    class Meta:
        model = ApiKey
        fields: tuple[str, ...] = (
            *("public_id", "client", "label", "grants", "allowed_addresses", "created_at"),
            *("expires_at", "revoked_at", "changed"),
        )


class IssuedKeySerializer(KeySerializer):
    has_secret = True
    key = serializers.CharField(source="text", help_text="The key itself. It is shown only once.")

    class Meta(KeySerializer.Meta):
        fields = (*KeySerializer.Meta.fields, "key")


class KeyChangeSerializer(ModelSerializer):
    grants = GrantsField(help_text=GRANTS)
    allowed_addresses = NetworksField(
        required=False,
        help_text=f"{ADDRESSES} At most {limits.ALLOWED_ADDRESSES_PER_KEY_MAX}.",
    )

    class Meta:
        model = ApiKey
        fields: tuple[str, ...] = ("grants", "label", "allowed_addresses")


class NewKeySerializer(KeyChangeSerializer):
    class Meta(KeyChangeSerializer.Meta):
        fields = ("grants", "label", "expires_at", "allowed_addresses")


class TokenRequestSerializer(Serializer):
    grants = GrantsField(
        required=False,
        default=None,
        help_text=f"{GRANTS} At most {limits.CONNECTION_TOKEN_GRANTS_MAX}, each covered by one of"
        " the key; by default those of the key.",
    )
    lifetime_s = WholeField(
        min_value=1,
        max_value=limits.CONNECTION_TOKEN_S_MAX,
        required=False,
        default=limits.CONNECTION_TOKEN_S_DEFAULT,
        help_text=f"The seconds for which the token is valid, at most"
        f" {limits.CONNECTION_TOKEN_S_MAX:,}; by default {limits.CONNECTION_TOKEN_S_DEFAULT}.",
    )


class TokenSerializer(Serializer):
    has_secret = True
    token = serializers.CharField()
    expires_at = MomentField()


class ChannelMaskSerializer(Serializer):
    mask = ChannelMaskField()


class ChannelSerializer(ChangedSerializer, AnswerSerializer):
    mask = serializers.SerializerMethodField(help_text="A power of two as a decimal string.")

    class Meta:
        model = Channel
        fields = ("name", "mask", "bit", "deletes_at", "changed")
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "deletes_at": {"help_text": "The end of its grace period; null: no deletion."}
        }

    def get_mask(self, channel: Channel) -> str:
        return str(1 << channel.bit)


class LoginSerializer(Serializer):
    username = TextField(max_length=150)
    password = TextField(max_length=limits.TEXT_CHARS_MAX)


class LoginStateSerializer(Serializer):
    has_secret = True
    username = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLES)
    csrf_token = serializers.CharField(help_text="Send it as X-CSRFToken with every write.")
