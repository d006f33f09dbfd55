"""Views of streams, segments, single events and keyed state, and of the hub as a whole: its last
start and its storage. Emits and listeners use the hot routes. Django module.
"""

import hashlib
import re
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.api.grace import GRACE, read_grace
from eventhub.api.if_match import IF_NONE_MATCH
from eventhub.api.pagination import PAGE, Listing, read_page
from eventhub.api.permissions import IsOperator, IsZoneManager, ManagesStream
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors
from eventhub.event.errors import ImmutableProperty, NotRepresentable
from eventhub.event.inbound import EventIn, parse
from eventhub.eventlog.errors import DurabilityFixed, NotDeleting, OnHold, StreamDeleting
from eventhub.eventlog.keyed_state import KeyState
from eventhub.eventlog.models import Segment, Stream
from eventhub.eventlog.streams import StreamRow
from eventhub.streams import selectors, services, state
from eventhub.streams.errors import KeyedFixed, NotKeyed, UnknownKey
from eventhub.streams.representations import (
    FORMATS,
    StoredEventJson,
    StreamEvent,
    accepted_format,
    stored_event_json,
)
from eventhub.streams.serializers import (
    KeyStateSerializer,
    PolicySerializer,
    QuotaSerializer,
    SegmentSerializer,
    SnapshotSerializer,
    StartSerializer,
    StorageSerializer,
    StreamSerializer,
)
from eventhub.streams.state import SnapshotPage
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType

_SEQUENCE = re.compile(r"[0-9]{1,18}")
_EVENT = (
    *(errors.EmptyBatch, errors.BatchTooLarge, errors.EventTooLarge, errors.MissingField),
    *(errors.UnknownChannel, errors.InvalidMask, TypeViolation, TypeTooCostly, UndeclaredType),
    ImmutableProperty,
)
_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="A sequence of the stream: 412 `changed` if the key changed after it or has no"
    " state.",
)


class Streams(ResourceView):
    """The streams of a zone on which the caller has any grant."""

    noun = "a stream", "streams"
    kind = "stream"
    unknown = errors.UnknownStream
    lookup_field = "name"
    lookup_url_kwarg = "stream"
    queryset = Stream.objects.all()
    serializer_class = StreamSerializer

    def get_queryset(self) -> Listing:
        fetch = partial(selectors.list_streams, actor=self.actor)
        return Listing(fetch, [Stream._meta.get_field("name")])

    def get_object(self) -> StreamRow:
        return selectors.find_stream(actor=self.actor, name=self.key)

    @operation(
        "Create a stream or change its policy",
        *(errors.InvalidField, errors.LimitReached, DurabilityFixed, KeyedFixed, StreamDeleting),
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
        [stream] = selectors.with_positions([row])
        return stream, new

    @operation(
        "Schedule the deletion of a stream, after a grace period",
        *(errors.InvalidField, OnHold),
        parameters=(GRACE,),
        permissions=(ManagesStream,),
        response=StreamSerializer,
        status=202,
    )
    def destroy(self, request: Request, **kwargs: Any) -> Response:
        row = services.schedule_deletion(
            zone_id=self.actor.zone_id,
            zone=self.actor.zone,
            name=self.key,
            grace_s=read_grace(request),
            if_match=self.if_match,
        )
        [stream] = selectors.with_positions([row])
        return self.answer(stream)


class RestoredStream(Streams):
    """A stream whose scheduled deletion is withdrawn."""

    @operation(
        "Withdraw the scheduled deletion of a stream",
        NotDeleting,
        body=EmptySerializer,
        permissions=(ManagesStream,),
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> StreamRow:
        row = services.withdraw_deletion(
            zone_id=self.actor.zone_id, zone=self.actor.zone, name=self.key
        )
        [stream] = selectors.with_positions([row])
        return stream


class Segments(ResourceView):
    """A stream's segments, oldest first; the last one is open."""  # EMC-14

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
    """One stored event. It was complete when it got its sequence and never changes."""  # EMC-04

    unknown = errors.UnknownEvent

    @operation(
        "Show an event; its ETag is the sha256 of the stored bytes",
        *(errors.UnknownStream, errors.Gone, errors.LogHole, NotRepresentable),
        errors.MethodNotAllowed,
        response={
            (200, "application/json"): StoredEventJson,
            **{
                (200, media): OpenApiTypes.OBJECT if media.endswith("json") else OpenApiTypes.STR
                for media in FORMATS
            },
        },
    )
    def retrieve(self, request: Request, **kwargs: Any) -> Response | HttpResponse:
        text = kwargs["sequence"]
        sequence = int(text) if _SEQUENCE.fullmatch(text) else None
        stream, stored = selectors.find_stored(
            actor=self.actor, name=kwargs["stream"], sequence=sequence
        )
        event = StreamEvent(stored, self.actor.zone_id, stream.name)
        media = accepted_format(request.headers.get("Accept", ""))
        if media is None:
            digest = hashlib.sha256(stored.payload).hexdigest()
            return Response(stored_event_json(event), headers={"ETag": f'"{digest}"'})
        text = FORMATS[media](event)
        return HttpResponse(text, content_type=media, headers={"Vary": "Accept"})

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise errors.MethodNotAllowed("A stored event never changes; only GET is allowed.")


class EmitOnly(ResourceView):
    """The path of the emit route, which serves POST before Django; other methods get 405."""

    schema = None  # documented by the table of the hot routes

    def create(self, request: Request, **kwargs: Any) -> Response:
        raise errors.MethodNotAllowed


class KeyedStates(ResourceView):
    """The latest event of each key, as of one sequence."""

    unknown = errors.UnknownStream
    serializer_class = SnapshotSerializer

    @operation(
        "Show the state of a keyed stream; its pages are one snapshot",
        *(NotKeyed, errors.InvalidField, errors.SegmentMismatch),
        parameters=PAGE,
    )
    def get_object(self) -> SnapshotPage:
        page = read_page(self.request)
        return state.read_page(actor=self.actor, stream=self.kwargs["stream"], page=page)


class OneKey(ResourceView):
    """The state of one key, which may contain slashes."""

    unknown = UnknownKey
    lookup_field = lookup_url_kwarg = "key"
    serializer_class = KeyStateSerializer

    @property
    def target(self) -> dict[str, Any]:
        return {"actor": self.actor, "stream": self.kwargs["stream"], "key": self.kwargs["key"]}

    @operation("Show the state of a key", errors.UnknownStream, NotKeyed)
    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        return self.answer(state.find_key(**self.target))

    @operation(
        "Put the state of a key; the event in the body is appended to the stream",
        *(errors.UnknownStream, NotKeyed, *_EVENT),
        body={"application/json": {"$ref": "#/components/schemas/EventIn"}},
        parameters=(_MATCH, IF_NONE_MATCH),
        response={200: KeyStateSerializer, 201: KeyStateSerializer},
    )
    def update(self, request: Request, **kwargs: Any) -> Response:
        event = _event(request)
        found, new = state.put_key(**self.target, event=event, expected=self.if_match)
        return self.answer(found, 201 if new else 200, KeyStateSerializer)

    @operation(
        "End the state of a key; a tombstone is appended to the stream",
        *(errors.UnknownStream, NotKeyed),
        parameters=(_MATCH,),
    )
    def perform_destroy(self) -> None:
        state.delete_key(**self.target, expected=self.if_match)

    def answer(self, item: KeyState, status: int = 200, serializer: Any = None) -> Response:
        found = super().answer(item, status, serializer)
        found["ETag"] = f'"{item.stored.sequence}"'
        return found


def _event(request: Request) -> EventIn:
    """Parse the body as the emit route does."""
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    events = parse(request._request.body, media_type)
    if len(events) != 1:
        raise errors.BatchTooLarge("The state of a key is one event.", events_max=1)
    return events[0]


class HubStarts(ResourceView):
    """The hub's last start."""  # EMC-17

    serializer_class = StartSerializer

    @operation("Show the hub's last start")
    def get_object(self) -> dict[str, Any]:
        return selectors.find_boot()


class StorageUse(ResourceView):
    """The storage that the hub's data uses, and the segments that policies dropped."""  # EMC-26

    permission_classes = (IsZoneManager,)
    serializer_class = StorageSerializer

    @operation("Show the storage in use, and what each policy has dropped")
    def get_object(self) -> dict[str, Any]:
        return selectors.report_storage(actor=self.actor)

    @operation("Set the quota of the hub", body=QuotaSerializer, permissions=(IsOperator,))
    def perform_update(self, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        services.set_quota(**body)
        return selectors.report_storage(actor=self.actor), False
