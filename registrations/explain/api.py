"""The API of checks of drafts, and of explanations of a filter or registration on an event. Django
module.
"""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access.names import valid_name
from eventhub.access.roles import VIEWER
from eventhub.api.resource import ResourceView, operation, parse_number
from eventhub.base import errors, metrics
from registrations.errors import UnknownRegistration
from registrations.explain import selectors
from registrations.explain.serializers import (
    CheckRequestSerializer,
    CheckSerializer,
    ExplainRequestSerializer,
    ExplanationSerializer,
    RegistrationExplanationSerializer,
)
from registrations.filters.errors import FilterSyntax, FilterTooLarge, UnknownLanguage

_EVENT = (
    *(errors.UnknownStream, errors.UnknownEvent, errors.Gone, errors.LogHole),
    *(errors.InvalidField, errors.MissingField, errors.UnknownChannel),
)


class Check(ResourceView):
    """The check of a filter, for editors."""

    serializer_class = CheckSerializer

    @operation(
        "Check a filter; nothing is registered",
        body=CheckRequestSerializer,
        status=200,
        role=VIEWER,
    )
    def create(self, request: Request, **kwargs: Any) -> Response:
        with metrics.EXPLAIN_S.labels(operation="check").time():
            return self.answer(selectors.check(actor=self.actor, body=request.data))


class Explain(ResourceView):
    """The explanation of a filter on one event."""

    serializer_class = ExplanationSerializer

    @operation(
        "Explain a filter on an event",
        *(*_EVENT, errors.InvalidMask, errors.BodyNotFilterable, errors.EventTooLarge),
        *(UnknownLanguage, FilterSyntax, FilterTooLarge),
        body=ExplainRequestSerializer,
        status=200,
        role=VIEWER,
    )
    def create(self, request: Request, **kwargs: Any) -> Response:
        with metrics.EXPLAIN_S.labels(operation="explain").time():
            return self.answer(selectors.explain_draft(actor=self.actor, body=request.data))


class ExplainRegistration(ResourceView):
    """The explanation of a registration on one stored event."""

    unknown = UnknownRegistration
    lookup_url_kwarg = "registration"
    serializer_class = RegistrationExplanationSerializer

    @operation(
        "Explain a registration on an event",
        *_EVENT,
        parameters=(
            OpenApiParameter("stream", str, required=True, description="A stream that it names."),
            OpenApiParameter(
                "sequence", int, required=True, description="The sequence of the event."
            ),
        ),
    )
    def get_object(self) -> dict[str, Any]:
        registration, query = self.key, self.request.query_params
        for name in ("stream", "sequence"):
            if name not in query:
                raise errors.MissingField(field=name)
        stream = valid_name(query["stream"], field="stream")
        unknown = errors.UnknownEvent("A sequence is a number from 1 on.", field="sequence")
        sequence = parse_number(query["sequence"], error=unknown)
        with metrics.EXPLAIN_S.labels(operation="explain").time():
            return selectors.explain_registration(
                actor=self.actor, id=registration, stream=stream, sequence=sequence
            )
