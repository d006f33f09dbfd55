"""The API of registration groups, which are suspended and resumed together. Django module."""

from typing import Any

from rest_framework import serializers

from eventhub.api.fields import FlagField, NameField
from eventhub.api.resource import operation
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import errors
from registrations.errors import GroupExists, GroupInUse, UnknownGroup, UnknownSessionGroup
from registrations.groups import services
from registrations.models import RegistrationGroup
from registrations.resource import OwnedView

_SUSPENDED = "While it is true, the group's registrations match nothing."


class GroupChangeSerializer(Serializer):
    suspended = FlagField(required=False, help_text=_SUSPENDED)


class NewGroupSerializer(GroupChangeSerializer):
    name = NameField(help_text="Unique among the client's groups.")
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    session = NameField(
        required=False,
        help_text="The consumer session of the client that it belongs to; by default the one that"
        " the request acts through. Immutable.",
    )
    session_group = NameField(
        required=False, help_text="Instead of `session`: the client's session group. Immutable."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "session" in attrs and "session_group" in attrs:
            raise errors.InvalidField(
                "A group belongs to a `session` or to a `session_group`, not to both.",
                field="session_group",
            )
        return attrs


class GroupSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    suspended = serializers.BooleanField(help_text=_SUSPENDED)
    registrations = serializers.IntegerField(help_text="Number of live registrations in the group.")
    session = serializers.CharField(
        source="session_name",
        allow_null=True,
        help_text="The consumer session that it belongs to; suspended with it.",
    )
    session_group = serializers.CharField(
        source="session_group_name", allow_null=True, help_text="Likewise, the session group."
    )

    class Meta:
        model = RegistrationGroup
        fields = (
            *("id", "client", "name", "suspended", "session", "session_group", "registrations"),
            *("created_at", "changed"),
        )


class RegistrationGroups(OwnedView):
    """The groups of a client, or of all clients of a zone. Another client's group is not found."""

    noun = "a registration group", "registration groups"
    kind = "registration_group"
    unknown = UnknownGroup
    lookup_url_kwarg = "group"
    queryset = services.GROUPS
    serializer_class = GroupSerializer

    @operation(
        "Create a registration group",
        *(GroupExists, errors.LimitReached, UnknownSessionGroup),
        body=NewGroupSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> RegistrationGroup:
        owner = self.owner(body)
        new = services.NewGroup(**body)
        return services.create_group(actor=self.actor, owner=owner, new=new)

    @operation("Suspend or resume a registration group", body=GroupChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> RegistrationGroup:
        with self.changing() as group:
            return services.change_group(actor=self.actor, group=group, **body)

    @operation("Delete a registration group that no registration names", GroupInUse)
    def perform_destroy(self) -> None:
        with self.changing() as group:
            services.delete_group(actor=self.actor, group=group)
