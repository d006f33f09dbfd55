"""The API of registrations (create one or many, list, change, end) and of filter languages. Django
module.
"""

from types import SimpleNamespace
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.api.json import StrictJSONListParser
from eventhub.api.pagination import Listing, WholeList
from eventhub.api.resource import ResourceView, operation
from eventhub.base import errors
from registrations import services
from registrations.endpoints.services import callback_addresses
from registrations.errors import (
    FiltersTooCostly,
    KeyTaken,
    OtherOwner,
    RefusedAddress,
    SignatureMismatch,
    TooManyRegistrations,
    TransientStream,
    UnknownEndpoint,
    UnknownGroup,
    UnknownRegistration,
    UnknownSessionGroup,
)
from registrations.filters.errors import FilterSyntax, FilterTooLarge, UnknownLanguage
from registrations.filters.languages import LANGUAGES, Language
from registrations.filtersets import RegistrationFilters
from registrations.models import Registration
from registrations.requests import parse_change, parse_new
from registrations.scope import owner
from registrations.selectors import list_registrations
from registrations.serializers import (
    CREATED_ONE_OR_MORE,
    ONE_OR_MORE,
    CreatedRegistrationSerializer,
    LanguageSerializer,
    RegistrationChangeSerializer,
    RegistrationSerializer,
)

_DEFINITION_ERRORS = (
    *(errors.BodyNotFilterable, errors.UnknownStream, UnknownEndpoint, UnknownGroup),
    *(UnknownLanguage, FilterSyntax, FilterTooLarge, FiltersTooCostly, TransientStream),
    *(SignatureMismatch, OtherOwner),
)


class Registrations(ResourceView):
    """The registrations of a client, or of all clients of a zone. Another client's registration is
    not found.
    """  # OIF-05

    noun = "a registration", "registrations"
    kind = "registration"
    unknown = UnknownRegistration
    lookup_url_kwarg = "registration"
    parser_classes = (StrictJSONListParser,)
    queryset = Registration.objects.all()
    serializer_class = RegistrationSerializer
    filterset_class = RegistrationFilters

    def get_queryset(self) -> Listing:
        conditions = self.filter_values

        def fetch(after: tuple[Any, ...] | None, count: int) -> list[SimpleNamespace]:
            [after_id] = after or (0,)
            return list_registrations(
                actor=self.actor, after=after_id, items_max=count, **conditions
            )

        return Listing(fetch, [Registration._meta.pk])

    def get_object(self) -> SimpleNamespace:
        found = list_registrations(actor=self.actor, ids=[self.key])
        if not found:
            raise self.not_found()
        return found[0]

    def name_of(self, item: SimpleNamespace) -> str:
        return str(item.id)

    @operation(
        "Create a registration, or all registrations of a list or none",
        *(*_DEFINITION_ERRORS, errors.LimitReached, KeyTaken, RefusedAddress, TooManyRegistrations),
        UnknownSessionGroup,
        body=ONE_OR_MORE,
        response=CREATED_ONE_OR_MORE,
    )
    def create(self, request: Request, **kwargs: Any) -> Response:
        new, several = parse_new(request.data, callback_addresses(self.actor.zone))
        client = owner(actor=self.actor, name=new[0].client)
        try:
            created = services.create_registrations(actor=self.actor, owner=client, items=new)
        except errors.EventHubError as error:
            error.index = error.index if several else None
            raise
        if several:
            items = self.represent_items(created, CreatedRegistrationSerializer)
            reply = Response({"items": items}, 201)
        else:
            reply = self.answer(created[0], 201, CreatedRegistrationSerializer)
        reply["Cache-Control"] = "no-store"
        return reply

    @operation(
        "Change a registration; the new version takes effect at one position of each stream",
        *_DEFINITION_ERRORS,
        body=RegistrationChangeSerializer,
    )
    def partial_update(self, request: Request, **kwargs: Any) -> Response:
        change = parse_change(request.data)
        found = services.change_registration(
            actor=self.actor, id=self.key, change=change, if_match=self.if_match
        )
        return self.answer(found)

    @operation("End a registration")
    def perform_destroy(self) -> None:
        services.delete_registration(actor=self.actor, id=self.key, if_match=self.if_match)


class Languages(ResourceView):
    """The languages of filters."""

    noun = "a filter language", "filter languages"
    serializer_class = LanguageSerializer
    pagination_class = WholeList

    def get_queryset(self) -> list[Language]:
        return [*LANGUAGES.values()]
