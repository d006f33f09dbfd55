"""The keyed state of a stream: its snapshot, and one key."""

from typing import Any

import orjson
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.fields import MomentField
from eventhub.access.pagination import PAGE, read_page
from eventhub.access.resource import ResourceView, operation
from eventhub.access.shapes import Serializer
from eventhub.event.inbound import EventIn, parse
from eventhub.eventlog.state import KeyState
from eventhub.streams import state
from eventhub.streams.errors import NotKeyed, UnknownKey
from eventhub.streams.serializers import CursorSerializer
from eventhub.streams.state import Snapshot
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType

_EVENT = (
    *(errors.EmptyBatch, errors.BatchTooLarge, errors.EventTooLarge, errors.MissingField),
    *(errors.UnknownChannel, errors.InvalidMask, TypeViolation, TypeTooCostly, UndeclaredType),
)
_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="A sequence of the stream: 412 `changed` if the key changed after it, or is gone.",
)
_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="`*`: only if the key is not there."
)


class KeyStateSerializer(Serializer):
    key = serializers.CharField()
    segment = serializers.UUIDField(source="stored.segment")
    sequence = serializers.IntegerField(
        source="stored.sequence", help_text="Of the key's latest event; its ETag."
    )
    appended_at = MomentField(source="stored.appended_at_us")
    event = serializers.SerializerMethodField(help_text="As it was emitted.")

    def get_event(self, found: KeyState) -> dict[str, Any]:
        event: dict[str, Any] = orjson.loads(found.stored.json)
        return event


class SnapshotSerializer(Serializer):
    stream = serializers.CharField()
    cursor = CursorSerializer(help_text="The events after it bring what has changed since.")
    items = KeyStateSerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="Pass as `after` for the next page; null at the end."
    )


class State(ResourceView):
    """The latest event of each key, as of one sequence."""

    unknown = errors.UnknownStream
    serializer_class = SnapshotSerializer

    @operation(
        "Show the state of a keyed stream; its pages are one snapshot",
        *(NotKeyed, errors.InvalidField, errors.SegmentMismatch),
        parameters=PAGE,
    )
    def get_object(self) -> Snapshot:
        page = read_page(self.request)
        asked = state.Asked(page.after, page.limit)
        found = state.read_page(actor=self.actor, stream=self.kwargs["stream"], asked=asked)
        self.stands_at(found.cursor)
        return found


class OneKey(ResourceView):
    """The state of one key, which may hold slashes."""

    unknown = UnknownKey
    lookup_field = lookup_url_kwarg = "key"
    serializer_class = KeyStateSerializer

    @property
    def place(self) -> dict[str, Any]:
        return {"actor": self.actor, "stream": self.kwargs["stream"], "key": self.kwargs["key"]}

    @operation("Show the state of a key", errors.UnknownStream, NotKeyed)
    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        found, place = state.find_key(**self.place)
        self.stands_at(place)
        return self.answer(found)

    @operation(
        "Put the state of a key; the event in the body is appended to the stream",
        *(errors.UnknownStream, NotKeyed, *_EVENT),
        body={"application/json": {"$ref": "#/components/schemas/EventIn"}},
        parameters=(_MATCH, _NONE_MATCH),
        answer={200: KeyStateSerializer, 201: KeyStateSerializer},
    )
    def update(self, request: Request, **kwargs: Any) -> Response:
        event = _event(request)
        found, new = state.put_key(**self.place, event=event, expected=self.if_match)
        return self.answer(found, 201 if new else 200, KeyStateSerializer)

    @operation(
        "End the state of a key; a tombstone is appended to the stream",
        *(errors.UnknownStream, NotKeyed),
        parameters=(_MATCH,),
    )
    def perform_destroy(self) -> None:
        state.delete_key(**self.place, expected=self.if_match)

    def answer(self, item: KeyState, status: int = 200, serializer: Any = None) -> Response:
        found = super().answer(item, status, serializer)
        found["ETag"] = f'"{item.stored.sequence}"'
        return found


def _event(request: Request) -> EventIn:
    """The body, read as the emit route reads it."""
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    events = parse(request._request.body, media_type)
    if len(events) != 1:
        raise errors.BatchTooLarge("The state of a key is one event.", events_max=1)
    return events[0]
