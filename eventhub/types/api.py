"""Views of event types, which every key of the zone may read. Django module."""

import re
from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.api.grace import GRACE, read_grace
from eventhub.api.pagination import Listing
from eventhub.api.permissions import IsZoneManager
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors, limits
from eventhub.eventlog.errors import NotDeleting
from eventhub.eventlog.resource_changes import Resource
from eventhub.types import selectors, services
from eventhub.types.errors import (
    IncompatibleType,
    InvalidSchema,
    TypeDeleting,
    TypeInUse,
    UnknownType,
)
from eventhub.types.models import EventType
from eventhub.types.serializers import DeclarationSerializer, DefinitionSerializer, TypeSerializer

_NUMBER = re.compile(r"[0-9]{1,9}")


class Types(ResourceView):
    """The newest version of each type of a zone, in the order of their first declarations."""

    noun = "a type", "types"
    queryset = EventType.objects.all()
    serializer_class = TypeSerializer

    def get_queryset(self) -> Listing:
        fetch = partial(selectors.list_types, zone_id=self.actor.zone_id)
        return Listing(fetch, [EventType._meta.pk])


class OneType(ResourceView):
    """One event type."""

    noun = "the newest version of a type", ""
    kind = "type"
    unknown = UnknownType
    serializer_class = DefinitionSerializer

    @property
    def names(self) -> dict[str, str]:
        """The domain and the type in the path. Raises FieldTooLong, InvalidName."""
        found = {name: self.kwargs[name] for name in ("domain", "type")}
        for name, text in found.items():
            if len(text) > limits.NAME_CHARS_MAX:
                raise errors.FieldTooLong(field=name, chars_max=limits.NAME_CHARS_MAX)
            if not text.isprintable() or text != text.strip() or text in (".", ".."):
                raise errors.InvalidName(
                    "A domain or type is printable characters; in a path, write `/` as %2F.",
                    field=name,
                )
        return found

    def resource(self, item: EventType) -> Resource:
        return services.resource_of(self.actor.zone_id, **self.names)

    def get_object(self) -> EventType:
        names, version = self.names, self.kwargs.get("version")
        if version is not None:
            version = int(version) if _NUMBER.fullmatch(version) else 0
        return selectors.find_type(zone_id=self.actor.zone_id, version=version, **names)

    @operation(
        "Declare a type, or a new version of it",
        *(errors.LimitReached, InvalidSchema, IncompatibleType, TypeDeleting),
        body=DeclarationSerializer,
        permissions=(IsZoneManager,),
    )
    def perform_update(self, body: dict[str, Any]) -> tuple[EventType, bool]:
        versions, new = services.declare(
            actor=self.actor, names=self.names, definition=body, since=self.if_match
        )
        return selectors.described(versions), new

    @operation(
        "Schedule the deletion of a type, after a grace period",
        *(errors.InvalidField, TypeInUse),
        parameters=(GRACE,),
        permissions=(IsZoneManager,),
        response=DefinitionSerializer,
        status=202,
    )
    def destroy(self, request: Request, **kwargs: Any) -> Response:
        versions = services.schedule_deletion(
            actor=self.actor,
            names=self.names,
            grace_s=read_grace(request),
            since=self.if_match,
        )
        return self.answer(selectors.described(versions))


class RestoredType(OneType):
    """A type whose scheduled deletion is withdrawn."""

    @operation(
        "Withdraw the scheduled deletion of a type",
        NotDeleting,
        body=EmptySerializer,
        permissions=(IsZoneManager,),
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> EventType:
        versions = services.withdraw_deletion(actor=self.actor, names=self.names)
        return selectors.described(versions)


class OneVersion(OneType):
    """One version of a type; it never changes."""

    noun = "a version of a type", ""
