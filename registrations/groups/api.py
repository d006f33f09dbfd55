"""Doors to groups of registrations: what is suspended and resumed in one act."""

from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.conditions import if_match, tagged, with_changes
from eventhub.access.schema import CHANGE, PAGE, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_body, read_page
from eventhub.eventlog.errors import Changed
from registrations.errors import GroupExists, GroupInUse, UnknownGroup
from registrations.groups import selectors, services
from registrations.groups.rows import resource_of
from registrations.groups.serializers import (
    GroupChangeSerializer,
    GroupSerializer,
    NewGroupSerializer,
    group_json,
)
from registrations.owners import owner
from registrations.pages import CLIENT, asked_name, number_after, number_of

_PAGED = (errors.InvalidField, errors.InvalidName, errors.FieldTooLong, errors.NotFound)


class Groups(ManagementView):
    """The groups of a client, or of all clients of a zone."""

    queries = frozenset({"after", "limit", "client"})

    @documented(
        Operation(
            "List registration groups",
            {200: page_of(GroupSerializer)},
            _PAGED,
            parameters=(ZONE, CLIENT, *PAGE),
        )
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        page = read_page(request)
        found = selectors.list_groups(
            actor=actor,
            client=asked_name(request, "client"),
            after=number_after(page),
            count=page.limit + 1,
        )
        items, after = cut_page(found, page.limit, lambda group: str(group.id))
        ids = [str(item.id) for item in items]
        shown = with_changes(map(group_json, items), "registration_group", actor.zone_id, ids)
        return Response({"items": shown, "next": after})

    @documented(
        Operation(
            "Create a registration group",
            {201: GroupSerializer},
            (*_PAGED, GroupExists, errors.MissingField, errors.LimitReached),
            NewGroupSerializer,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_body(request, NewGroupSerializer)
        client = owner(actor=actor, name=body.pop("client", None))
        made = services.create_group(actor=actor, owner=client, **body)
        return tagged(group_json(made), resource_of(actor.zone_id, made.id), 201)


class OneGroup(ManagementView):
    """One group. Another client's is not found."""

    @documented(Operation("Show a registration group", {200: GroupSerializer}, (UnknownGroup,)))
    def get(self, request: Request, group: str) -> Response:
        actor = actor_of(request)
        found = selectors.find_group(actor=actor, group_id=_number(group))
        return tagged(group_json(found), resource_of(actor.zone_id, found.id))

    @documented(
        Operation(
            "Suspend or resume a registration group",
            {200: GroupSerializer},
            (UnknownGroup, Changed),
            GroupChangeSerializer,
            CHANGE,
        )
    )
    def patch(self, request: Request, group: str) -> Response:
        actor = actor_of(request)
        group_id = _number(group)
        body = read_body(request, GroupChangeSerializer)
        found = services.change_group(
            actor=actor,
            whose=selectors.whose(actor=actor),
            group_id=group_id,
            suspended=body.get("suspended"),
            if_match=if_match(request),
        )
        return tagged(group_json(found), resource_of(actor.zone_id, found.id))

    @documented(
        Operation(
            "Delete a registration group that no registration names",
            {204: None},
            (UnknownGroup, GroupInUse, Changed),
            parameters=CHANGE,
        )
    )
    def delete(self, request: Request, group: str) -> Response:
        actor = actor_of(request)
        services.delete_group(
            actor=actor,
            whose=selectors.whose(actor=actor),
            group_id=_number(group),
            if_match=if_match(request),
        )
        return Response(status=204)


def _number(group: str) -> int:
    return number_of(group, otherwise=UnknownGroup(field="group"))
