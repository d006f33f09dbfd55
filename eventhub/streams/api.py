"""Doors to streams, their segments and single events.

What emits and listens are the hot doors, not these.
"""

import re

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.conditions import condition_of_put, tagged, with_changes
from eventhub.access.names import valid_name
from eventhub.access.schema import PAGE, PUT, ZONE, Operation, documented, page_of
from eventhub.access.view import ManagementView, actor_of, cut_page, read_body, read_page
from eventhub.event.errors import NotRepresentable
from eventhub.eventlog.errors import Changed, DurabilityFixed
from eventhub.eventlog.streams import SegmentRow
from eventhub.streams import selectors, services
from eventhub.streams.errors import KeyedFixed
from eventhub.streams.forms import FORMS, accepted, shown
from eventhub.streams.serializers import (
    PolicySerializer,
    SegmentSerializer,
    StoredEventSerializer,
    StreamSerializer,
    segment_json,
    stream_json,
)

_SEQUENCE = re.compile(r"[0-9]{1,18}")
_SEGMENT_AFTER = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")
_NAMED = (errors.InvalidName, errors.FieldTooLong, errors.UnknownStream, errors.NotFound)
_PAGED = (errors.InvalidField, errors.InvalidName, errors.FieldTooLong)


class Streams(ManagementView):
    """The streams of a zone that the caller has any grant on."""

    queries = frozenset({"after", "limit"})

    @documented(
        Operation(
            "List streams",
            {200: page_of(StreamSerializer)},
            (*_PAGED, errors.NotFound),
            parameters=(ZONE, *PAGE),
        )
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        page = read_page(request)
        streams = selectors.list_streams(actor=actor, after=page.after, count=page.limit + 1)
        items, after = cut_page(streams, page.limit, lambda stream: stream.name)
        found = with_changes(
            map(stream_json, items), "stream", actor.zone_id, [stream.name for stream in items]
        )
        return Response({"items": found, "next": after})


class OneStream(ManagementView):
    """One stream."""

    @documented(Operation("Show a stream", {200: StreamSerializer}, _NAMED))
    def get(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        found = selectors.find_stream(actor=actor, name=stream)
        return tagged(stream_json(found), services.stream_resource(actor.zone_id, stream))

    @documented(
        Operation(
            "Create a stream or change its policy",
            {200: StreamSerializer, 201: StreamSerializer},
            (*_NAMED, errors.LimitReached, DurabilityFixed, KeyedFixed, Changed),
            PolicySerializer,
            PUT,
        )
    )
    def put(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        actor.require("manage", stream)
        policy = read_body(request, PolicySerializer)
        row, new = services.put_stream(
            zone_id=actor.zone_id,
            zone=actor.zone,
            name=stream,
            policy=policy,
            if_match=condition_of_put(request),
        )
        resource = services.stream_resource(actor.zone_id, stream)
        [placed] = selectors.with_places([row])
        return tagged(stream_json(placed), resource, 201 if new else 200)


class Segments(ManagementView):
    """A stream's segments, the oldest first."""

    queries = frozenset({"after", "limit"})

    @documented(
        Operation(
            "List a stream's segments",
            {200: page_of(SegmentSerializer)},
            (*_NAMED, *_PAGED),
            parameters=(ZONE, *PAGE),
        )
    )
    def get(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        page = read_page(request)
        segments = selectors.list_segments(
            actor=actor, name=stream, after=_segment_after(page.after), count=page.limit + 1
        )
        items, after = cut_page(segments, page.limit, _segment_mark)
        return Response({"items": [segment_json(segment) for segment in items], "next": after})


class CurrentSegment(ManagementView):
    """The segment being written (EMC-14)."""

    @documented(Operation("Show the segment being written", {200: SegmentSerializer}, _NAMED))
    def get(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        return Response(segment_json(selectors.current_segment(actor=actor, name=stream)))


class OneEvent(ManagementView):
    """One stored event. It was complete when it got its number and never changes (EMC-04)."""

    @documented(
        Operation(
            "Show an event; its ETag is the sha256 of the stored bytes",
            {
                (200, "application/json"): StoredEventSerializer,
                **{(200, form): OpenApiTypes.STR for form in FORMS},
            },
            (
                *_NAMED,
                errors.UnknownEvent,
                errors.Gone,
                errors.MethodNotAllowed,
                errors.LogHole,
                NotRepresentable,
            ),
        )
    )
    def get(self, request: Request, stream: str, sequence: str) -> Response | HttpResponse:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        if not _SEQUENCE.fullmatch(sequence):
            raise errors.UnknownEvent("A sequence is a number from 1 on.", field="sequence")
        found = selectors.find_event(actor=actor, name=stream, sequence=int(sequence))
        self.stands_at(found.place)
        form = accepted(request.headers.get("Accept", ""))
        if form is None:
            return Response(
                {**found.json, **shown(found.placed)}, headers={"ETag": f'"{found.digest}"'}
            )
        text = FORMS[form](found.placed)
        return HttpResponse(text, content_type=form, headers={"Vary": "Accept"})


class EmitOnly(ManagementView):
    """The path of the emit door: POST never comes here, and nothing else is allowed on it."""

    schema = None  # documented by the doors' own table

    @property
    def allowed_methods(self) -> list[str]:
        return ["POST"]


def _segment_after(text: str) -> tuple[int, int]:
    if not text:
        return (0, 0)
    found = _SEGMENT_AFTER.fullmatch(text)
    if found is None:
        raise errors.InvalidField("Pass the `next` of the page before.", field="after")
    return int(found[1]), int(found[2])


def _segment_mark(segment: SegmentRow) -> str:
    return f"{segment.first}.{segment.id}"
