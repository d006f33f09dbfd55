"""The shapes of the management API's bodies and answers."""

from typing import Any

from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import (
    ChannelMaskField,
    GrantSerializer,
    GrantsField,
    GroupsField,
    MomentField,
    NameField,
    StrictSerializer,
    TextField,
    WholeField,
)
from eventhub.access.models import ApiKey, Channel, Client


class NewNameSerializer(StrictSerializer):
    name = NameField()


class ZoneSerializer(serializers.Serializer):
    name = serializers.CharField()


class ChangedSerializer(serializers.Serializer):
    """What can be changed under a condition."""

    changed = serializers.IntegerField(
        help_text="The sequence of `system` that told its last change; its ETag, for `If-Match`."
    )


class NewClientSerializer(NewNameSerializer):
    groups = GroupsField(required=False, default=())


class ClientChangeSerializer(StrictSerializer):
    groups = GroupsField(required=False, default=None)


class ClientSerializer(ChangedSerializer):
    name = serializers.CharField()
    groups = serializers.ListField(
        child=serializers.CharField(), help_text="Whose events with an `audience` it may see."
    )
    created_at = serializers.DateTimeField()


class NewKeySerializer(StrictSerializer):
    grants = GrantsField()
    label = TextField(
        max_length=limits.NAME_CHARS_MAX, required=False, allow_blank=True, default=""
    )
    expires_at = MomentField(required=False, allow_null=True, default=None)


class KeyChangeSerializer(StrictSerializer):
    grants = GrantsField(required=False, default=None)
    label = TextField(
        max_length=limits.NAME_CHARS_MAX, required=False, allow_blank=True, default=None
    )


class KeySerializer(ChangedSerializer):
    public_id = serializers.CharField(help_text="Names the key; not secret.")
    client = serializers.CharField()
    label = serializers.CharField()
    grants = GrantSerializer(many=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class IssuedKeySerializer(KeySerializer):
    key = serializers.CharField(help_text="The key itself. It is shown this once.")


class TokenRequestSerializer(StrictSerializer):
    grants = GrantsField(required=False, default=None)
    lifetime_s = WholeField(
        min_value=1,
        max_value=limits.CONNECTION_TOKEN_S_MAX,
        required=False,
        default=limits.CONNECTION_TOKEN_S_DEFAULT,
    )


class TokenSerializer(serializers.Serializer):
    token = serializers.CharField()
    expires_at = serializers.DateTimeField()


class ChannelMaskSerializer(StrictSerializer):
    mask = ChannelMaskField()


class ChannelSerializer(ChangedSerializer):
    name = serializers.CharField()
    mask = serializers.CharField(help_text="A power of two as a decimal string.")
    bit = serializers.IntegerField()


class LoginSerializer(StrictSerializer):
    username = TextField(max_length=150)
    password = TextField(max_length=limits.TEXT_CHARS_MAX)


class LoginStateSerializer(serializers.Serializer):
    username = serializers.CharField()
    csrf_token = serializers.CharField(help_text="Send it as X-CSRFToken with every write.")


def client_json(client: Client) -> dict[str, Any]:
    return {"name": client.name, "groups": client.groups, "created_at": client.created_at}


def key_json(key: ApiKey) -> dict[str, Any]:
    fields = ("public_id", "label", "grants", "created_at", "expires_at", "revoked_at")
    return {"client": key.client.name, **{name: getattr(key, name) for name in fields}}


def channel_json(channel: Channel) -> dict[str, Any]:
    return {"name": channel.name, "mask": str(1 << channel.bit), "bit": channel.bit}
