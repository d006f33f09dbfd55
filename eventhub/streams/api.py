"""Streams, their segments and single events. What emits and listens are the hot routes."""

import re
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.pagination import Listing
from eventhub.access.permissions import ManagesStream
from eventhub.access.resource import ResourceView, operation
from eventhub.event.errors import NotRepresentable
from eventhub.eventlog.errors import DurabilityFixed
from eventhub.eventlog.models import Segment, Stream
from eventhub.eventlog.streams import StreamRow
from eventhub.streams import selectors, services
from eventhub.streams.errors import KeyedFixed
from eventhub.streams.forms import FORMS, StoredEventJson, accepted, shown
from eventhub.streams.serializers import (
    PolicySerializer,
    SegmentSerializer,
    StreamSerializer,
)

_SEQUENCE = re.compile(r"[0-9]{1,18}")


class Streams(ResourceView):
    """The streams of a zone that the caller has any grant on."""

    noun = "a stream", "streams"
    kind = "stream"
    unknown = errors.UnknownStream
    lookup_field = "name"
    lookup_url_kwarg = "stream"
    queryset = Stream.objects.all()
    serializer_class = StreamSerializer

    def get_queryset(self) -> Listing:
        def fetch(after: tuple[Any, ...] | None, count: int) -> list[StreamRow]:
            [name] = after or ("",)
            return selectors.list_streams(actor=self.actor, after=name, count=count)

        return Listing(fetch, [Stream._meta.get_field("name")])

    def get_object(self) -> StreamRow:
        return selectors.find_stream(actor=self.actor, name=self.key)

    @operation(
        "Create a stream or change its policy",
        *(errors.InvalidField, errors.LimitReached, DurabilityFixed, KeyedFixed),
        body=PolicySerializer,
        permissions=(ManagesStream,),
    )
    def perform_update(self, body: dict[str, Any]) -> tuple[StreamRow, bool]:
        row, new = services.put_stream(
            zone_id=self.actor.zone_id,
            zone=self.actor.zone,
            name=self.key,
            policy=body,
            if_match=self.if_match,
        )
        [placed] = selectors.with_places([row])
        return placed, new


class Segments(ResourceView):
    """A stream's segments, the oldest first; the last is being written (EMC-14)."""

    noun = "the segment being written", "a stream's segments"
    unknown = errors.UnknownStream
    queryset = Segment.objects.all()
    serializer_class = SegmentSerializer
    ordering = ("first", "id")

    def get_queryset(self) -> QuerySet[Segment]:
        return selectors.segments_of(actor=self.actor, name=self.kwargs["stream"])

    def get_object(self) -> Segment:
        return selectors.current_segment(actor=self.actor, name=self.kwargs["stream"])


class OneEvent(ResourceView):
    """One stored event. It was complete when it got its number and never changes (EMC-04)."""

    unknown = errors.UnknownEvent

    @operation(
        "Show an event; its ETag is the sha256 of the stored bytes",
        *(errors.UnknownStream, errors.Gone, errors.LogHole, NotRepresentable),
        errors.MethodNotAllowed,
        answer={
            (200, "application/json"): StoredEventJson,
            **{
                (200, form): OpenApiTypes.OBJECT if form.endswith("json") else OpenApiTypes.STR
                for form in FORMS
            },
        },
    )
    def retrieve(self, request: Request, **kwargs: Any) -> Response | HttpResponse:
        if not _SEQUENCE.fullmatch(kwargs["sequence"]):
            raise errors.UnknownEvent("A sequence is a number from 1 on.", field="sequence")
        sequence = int(kwargs["sequence"])
        found = selectors.find_event(actor=self.actor, name=kwargs["stream"], sequence=sequence)
        self.stands_at(found.place)
        form = accepted(request.headers.get("Accept", ""))
        if form is None:
            body = {**found.json, **shown(found.placed)}
            return Response(body, headers={"ETag": f'"{found.digest}"'})
        text = FORMS[form](found.placed)
        return HttpResponse(text, content_type=form, headers={"Vary": "Accept"})

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise errors.MethodNotAllowed("A stored event never changes; it is only read.")


class EmitOnly(ResourceView):
    """The path of the emit route: POST never comes here, and nothing else is allowed on it."""

    schema = None  # documented by the hot routes' own table

    def create(self, request: Request, **kwargs: Any) -> Response:
        raise errors.MethodNotAllowed
