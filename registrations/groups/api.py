"""Groups of registrations: what is suspended and resumed in one act."""

from typing import Any

from django.db.models import QuerySet

from eventhub import errors
from eventhub.access.resource import ResourceView, operation
from registrations.errors import GroupExists, GroupInUse, UnknownGroup
from registrations.filtersets import OfClient
from registrations.groups import services
from registrations.groups.selectors import groups_of
from registrations.groups.serializers import (
    GroupChangeSerializer,
    GroupSerializer,
    NewGroupSerializer,
)
from registrations.models import RegistrationGroup
from registrations.owners import owner
from registrations.permissions import ListensSomewhere


class Groups(ResourceView):
    """The groups of a client, or of all clients of a zone. Another client's is not found."""

    noun = "a registration group", "registration groups"
    kind = "registration_group"
    unknown = UnknownGroup
    lookup_url_kwarg = "group"
    permission_classes = (ListensSomewhere,)
    queryset = RegistrationGroup.objects.all()
    serializer_class = GroupSerializer
    filterset_class = OfClient

    def get_queryset(self) -> QuerySet[RegistrationGroup]:
        return groups_of(actor=self.actor)

    @operation(
        "Create a registration group", GroupExists, errors.LimitReached, body=NewGroupSerializer
    )
    def perform_create(self, body: dict[str, Any]) -> RegistrationGroup:
        client = owner(actor=self.actor, name=body.pop("client", None))
        return services.create_group(actor=self.actor, owner=client, **body)

    @operation("Suspend or resume a registration group", body=GroupChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> RegistrationGroup:
        return services.change_group(
            actor=self.actor,
            group_id=self.key,
            suspended=body.get("suspended"),
            if_match=self.if_match,
        )

    @operation("Delete a registration group that no registration names", GroupInUse)
    def perform_destroy(self) -> None:
        services.delete_group(actor=self.actor, group_id=self.key, if_match=self.if_match)
