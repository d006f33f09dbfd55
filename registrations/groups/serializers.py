"""The shapes of the groups' bodies and answers."""

from typing import Any

from rest_framework import serializers

from eventhub.access.fields import FlagField, NameField, StrictSerializer
from eventhub.access.shapes import ChangedSerializer
from eventhub.event.json_codec import time_text
from registrations.groups.rows import Group

_SUSPENDED = "Nothing matches its registrations while it is true."


class NewGroupSerializer(StrictSerializer):
    name = NameField(help_text="Unique among the client's groups.")
    suspended = FlagField(required=False, default=False, help_text=_SUSPENDED)
    client = NameField(
        required=False, help_text="Whose it is; a key's own client if it is not given."
    )


class GroupChangeSerializer(StrictSerializer):
    suspended = FlagField(required=False, help_text=_SUSPENDED)


class GroupSerializer(ChangedSerializer):
    id = serializers.IntegerField()
    client = serializers.CharField()
    name = serializers.CharField()
    suspended = serializers.BooleanField(help_text=_SUSPENDED)
    registrations = serializers.IntegerField(help_text="How many are in it.")
    created_at = serializers.DateTimeField()


def group_json(group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "client": group.client,
        "name": group.name,
        "suspended": group.suspended,
        "registrations": group.registrations,
        "created_at": time_text(group.created_at_us),
    }
