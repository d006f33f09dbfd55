"""Doors to registrations: make them, one or many at once, list, change and end them."""

from collections.abc import Iterator
from contextlib import contextmanager

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.conditions import if_match, tagged, with_changes
from eventhub.access.parsers import StrictJSONListParser, StrictJSONParser
from eventhub.access.schema import CHANGE, PAGE, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_page
from eventhub.eventlog.errors import Changed
from registrations import selectors, services
from registrations.endpoints.services import callback_addresses
from registrations.errors import (
    FiltersTooCostly,
    FilterSyntax,
    FilterTooLarge,
    KeyTaken,
    RefusedAddress,
    TooManyRegistrations,
    TransientStream,
    UnknownEndpoint,
    UnknownGroup,
    UnknownLanguage,
    UnknownRegistration,
)
from registrations.lang.languages import LANGUAGES
from registrations.owners import owner, scope
from registrations.pages import (
    CLIENT,
    asked_flag,
    asked_name,
    asked_number,
    number_after,
    number_of,
)
from registrations.requests import key_of, parse_change, parse_new
from registrations.serializers import (
    MADE_ONE_OR_MORE,
    ONE_OR_MORE,
    LanguageSerializer,
    RegistrationChangeSerializer,
    RegistrationSerializer,
    language_json,
    registration_json,
)

_PAGED = (errors.InvalidField, errors.InvalidName, errors.FieldTooLong, errors.NotFound)
_ASKED = (
    errors.InvalidName,
    errors.FieldTooLong,
    errors.BodyNotFilterable,
    errors.UnknownStream,
    UnknownEndpoint,
    UnknownGroup,
    UnknownLanguage,
    FilterSyntax,
    FilterTooLarge,
    FiltersTooCostly,
    TransientStream,
)
_SEARCH = (
    CLIENT,
    OpenApiParameter("stream", str, description="Those that name this stream."),
    OpenApiParameter("endpoint", int, description="Those that name this endpoint."),
    OpenApiParameter("group", str, description="Those of the groups of this name."),
    OpenApiParameter("suspended", bool, description="Those that are, or are not, by themselves."),
    OpenApiParameter("key", str, description="Those of this key."),
)


class Registrations(ManagementView):
    """The registrations of a client, or of all clients of a zone."""

    queries = frozenset(
        {"after", "limit", "client", "stream", "endpoint", "group", "suspended", "key"}
    )
    parser_classes = (StrictJSONListParser,)

    @documented(
        Operation(
            "List registrations",
            {200: page_of(RegistrationSerializer)},
            _PAGED,
            parameters=(ZONE, *_SEARCH, *PAGE),
        )
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        page = read_page(request)
        asked = selectors.Asked(
            asked_name(request, "client"),
            asked_name(request, "stream"),
            asked_number(request, "endpoint"),
            asked_name(request, "group"),
            asked_flag(request, "suspended"),
            key_of(request.query_params.get("key")),
        )
        found = selectors.list_registrations(
            actor=actor, asked=asked, after=number_after(page), count=page.limit + 1
        )
        items, after = cut_page(found, page.limit, lambda shown: str(shown.row.id))
        ids = [str(item.row.id) for item in items]
        shown = with_changes(map(registration_json, items), "registration", actor.zone_id, ids)
        return Response({"items": shown, "next": after})

    @documented(
        Operation(
            "Create registrations; all of a list, or none",
            {201: MADE_ONE_OR_MORE},
            (
                *_ASKED,
                errors.MissingField,
                errors.NotFound,
                errors.LimitReached,
                KeyTaken,
                RefusedAddress,
                TooManyRegistrations,
            ),
            ONE_OR_MORE,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        wanted, several = parse_new(request.data, callback_addresses())
        client = owner(actor=actor, name=wanted[0].client)
        with _positions(several):
            made = services.create_registrations(actor=actor, owner=client, items=wanted)
        found = [registration_json(shown) for shown in made]
        if several:
            ids = [str(shown.row.id) for shown in made]
            items = with_changes(found, "registration", actor.zone_id, ids)
            reply = Response({"items": items}, 201)
        else:
            reply = tagged(found[0], services.registration_resource(actor, made[0].row.id), 201)
        reply["Cache-Control"] = "no-store"
        return reply


class OneRegistration(ManagementView):
    """One registration, by its ticket. Another client's is not found (OIF-05)."""

    parser_classes = (StrictJSONParser,)

    @documented(
        Operation("Show a registration", {200: RegistrationSerializer}, (UnknownRegistration,))
    )
    def get(self, request: Request, registration: str) -> Response:
        actor = actor_of(request)
        found = selectors.find_registration(actor=actor, id=_ticket(registration))
        return tagged(registration_json(found), services.registration_resource(actor, found.row.id))

    @documented(
        Operation(
            "Change a registration; the new version takes over at one place",
            {200: RegistrationSerializer},
            (UnknownRegistration, *_ASKED, Changed),
            RegistrationChangeSerializer,
            CHANGE,
        )
    )
    def patch(self, request: Request, registration: str) -> Response:
        actor = actor_of(request)
        ticket = _ticket(registration)
        change = parse_change(request.data)
        with _positions(several=False):
            found = services.change_registration(
                actor=actor,
                client_id=scope(actor=actor),
                id=ticket,
                change=change,
                if_match=if_match(request),
            )
        return tagged(registration_json(found), services.registration_resource(actor, ticket))

    @documented(
        Operation(
            "End a registration",
            {204: None},
            (UnknownRegistration, Changed),
            parameters=CHANGE,
        )
    )
    def delete(self, request: Request, registration: str) -> Response:
        actor = actor_of(request)
        services.delete_registration(
            actor=actor,
            client_id=scope(actor=actor),
            id=_ticket(registration),
            if_match=if_match(request),
        )
        return Response(status=204)


def _ticket(text: str) -> int:
    return number_of(text, otherwise=UnknownRegistration(field="registration"))


@contextmanager
def _positions(several: bool) -> Iterator[None]:
    """An error has an index only in a list."""
    try:
        yield
    except errors.EventHubError as error:
        error.index = error.index if several else None
        raise


class Languages(ManagementView):
    """The languages that a filter may be written in."""

    @documented(Operation("List filter languages", {200: page_of(LanguageSerializer)}, ()))
    def get(self, request: Request) -> Response:
        actor_of(request)
        return Response({"items": [language_json(one) for one in LANGUAGES.values()], "next": None})
