"""The shapes of the groups' bodies and answers."""

from rest_framework import serializers

from eventhub.access.fields import FlagField, NameField
from eventhub.access.shapes import AnswerSerializer, ChangedSerializer, Serializer
from registrations.models import RegistrationGroup

_SUSPENDED = "Nothing matches its registrations while it is true."


class GroupChangeSerializer(Serializer):
    suspended = FlagField(required=False, help_text=_SUSPENDED)


class NewGroupSerializer(GroupChangeSerializer):
    name = NameField(help_text="Unique among the client's groups.")
    client = NameField(
        required=False, help_text="Whose it is; a key's own client if it is not given."
    )


class GroupSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    suspended = serializers.BooleanField(help_text=_SUSPENDED)
    registrations = serializers.IntegerField(help_text="How many are in it.")

    class Meta:
        model = RegistrationGroup
        fields = ("id", "client", "name", "suspended", "registrations", "created_at", "changed")
