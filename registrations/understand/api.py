"""Doors that explain: what a draft says, and why a filter or a registration holds for an event."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors, metrics
from eventhub.access.names import valid_name
from eventhub.access.schema import ZONE, Operation, documented
from eventhub.access.view import ManagementView, actor_of
from registrations.errors import (
    FilterSyntax,
    FilterTooLarge,
    UnknownLanguage,
    UnknownRegistration,
)
from registrations.pages import number_of
from registrations.understand import selectors
from registrations.understand.serializers import (
    CheckRequestSerializer,
    CheckSerializer,
    ExplainRequestSerializer,
    ExplanationSerializer,
    RegistrationExplanationSerializer,
)

_EVENT = (
    *(errors.InvalidName, errors.UnknownStream, errors.UnknownEvent, errors.Gone),
    *(errors.LogHole, errors.FieldTooLong, errors.MissingField, errors.UnknownChannel),
)


class Check(ManagementView):
    """A filter, while somebody writes it."""

    conditional = False

    @documented(
        Operation(
            "Check a filter; nothing is registered",
            {200: CheckSerializer},
            (),
            CheckRequestSerializer,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        with metrics.UNDERSTAND_S.labels(what="check").time():
            return Response(selectors.check(actor=actor, body=request.data))


class Explain(ManagementView):
    """A filter on one event."""

    conditional = False

    @documented(
        Operation(
            "Explain a filter on an event",
            {200: ExplanationSerializer},
            (
                *_EVENT,
                *(errors.InvalidMask, errors.BodyNotFilterable, errors.EventTooLarge),
                *(UnknownLanguage, FilterSyntax, FilterTooLarge),
            ),
            ExplainRequestSerializer,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        with metrics.UNDERSTAND_S.labels(what="explain").time():
            found = selectors.explain_draft(actor=actor, body=request.data)
        if found.place is not None:
            self.stands_at(found.place)
        return Response(found.json)


class ExplainRegistration(ManagementView):
    """A registration on one stored event."""

    queries = frozenset({"stream", "sequence"})

    @documented(
        Operation(
            "Explain a registration on an event",
            {200: RegistrationExplanationSerializer},
            (*_EVENT, errors.InvalidField, UnknownRegistration),
            parameters=(
                ZONE,
                OpenApiParameter("stream", str, required=True, description="One that it names."),
                OpenApiParameter("sequence", int, required=True, description="Of the event."),
            ),
        )
    )
    def get(self, request: Request, registration: str) -> Response:
        actor = actor_of(request)
        ticket = number_of(registration, otherwise=UnknownRegistration(field="registration"))
        for name in ("stream", "sequence"):
            if name not in request.query_params:
                raise errors.MissingField(field=name)
        stream = valid_name(request.query_params["stream"], field="stream")
        unknown = errors.UnknownEvent("A sequence is a number from 1 on.", field="sequence")
        sequence = number_of(request.query_params["sequence"], otherwise=unknown)
        with metrics.UNDERSTAND_S.labels(what="explain").time():
            found = selectors.explain_registration(
                actor=actor, id=ticket, stream=stream, sequence=sequence
            )
        self.stands_at(found.place)
        return Response(found.json)
