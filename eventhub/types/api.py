"""Doors to the definitions of event types. Whoever has a key of the zone may read them."""

import re

from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors, limits
from eventhub.access.conditions import condition_of_put, tagged
from eventhub.access.schema import PAGE, PUT, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_body, read_page
from eventhub.eventlog.errors import Changed
from eventhub.types import selectors, services
from eventhub.types.errors import IncompatibleType, InvalidSchema, UnknownType
from eventhub.types.serializers import (
    DeclarationSerializer,
    DefinitionSerializer,
    TypeSerializer,
    definition_json,
    type_json,
)
from eventhub.types.services import Declaration

_NUMBER = re.compile(r"[0-9]{1,9}")
_NAMED = (errors.InvalidName, errors.FieldTooLong, errors.NotFound, UnknownType)


class Types(ManagementView):
    """The newest version of each type of a zone, in the order in which they were first declared."""

    queries = frozenset({"after", "limit"})

    @documented(
        Operation(
            "List types",
            {200: page_of(TypeSerializer)},
            (errors.InvalidField, errors.InvalidName, errors.FieldTooLong, errors.NotFound),
            parameters=(ZONE, *PAGE),
        )
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        page = read_page(request)
        after = page.after or "0"
        if not _NUMBER.fullmatch(after):
            raise errors.InvalidField("Pass the `next` of the page before.", field="after")
        found = selectors.list_types(zone_id=actor.zone_id, after=int(after), count=page.limit + 1)
        items, following = cut_page(found, page.limit, lambda item: str(item[1]))
        return Response({"items": [type_json(one) for one, _ in items], "next": following})


class OneType(ManagementView):
    """One type."""

    @documented(Operation("Show the newest version of a type", {200: DefinitionSerializer}, _NAMED))
    def get(self, request: Request, domain: str, type: str) -> Response:
        return _shown(request, domain, type, None)

    @documented(
        Operation(
            "Declare a type, or a new version of it",
            {200: DefinitionSerializer, 201: DefinitionSerializer},
            (
                *_NAMED,
                errors.MissingField,
                errors.LimitReached,
                InvalidSchema,
                IncompatibleType,
                Changed,
            ),
            DeclarationSerializer,
            PUT,
        )
    )
    def put(self, request: Request, domain: str, type: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        _check_name(domain, "domain")
        _check_name(type, "type")
        body = read_body(request, DeclarationSerializer)
        given = Declaration(domain=domain, type=type, **body)
        found, new = services.declare(actor=actor, given=given, since=condition_of_put(request))
        resource = services.resource_of(actor.zone_id, domain, type)
        shown = selectors.show(actor.zone_id, found[-1], len(found))
        return tagged(definition_json(shown), resource, 201 if new else 200)


class OneVersion(ManagementView):
    """One version of a type; it never changes."""

    @documented(Operation("Show a version of a type", {200: DefinitionSerializer}, _NAMED))
    def get(self, request: Request, domain: str, type: str, version: str) -> Response:
        return _shown(request, domain, type, version)


def _shown(request: Request, domain: str, type: str, version: str | None) -> Response:
    actor = actor_of(request)
    _check_name(domain, "domain")
    _check_name(type, "type")
    number = None if version is None else _number(version)
    found = selectors.find_type(zone_id=actor.zone_id, domain=domain, type=type, version=number)
    resource = services.resource_of(actor.zone_id, domain, type)
    return tagged(definition_json(found), resource)


def _number(version: str) -> int:
    return int(version) if _NUMBER.fullmatch(version) else 0


def _check_name(text: str, field: str) -> None:
    """A domain or type that can stand in a path."""
    if len(text) > limits.NAME_CHARS_MAX:
        raise errors.FieldTooLong(field=field, chars_max=limits.NAME_CHARS_MAX)
    if not text.isprintable() or text != text.strip() or text in (".", ".."):
        raise errors.InvalidName(
            "A domain or type is printable characters; in a path `/` is %2F.", field=field
        )
