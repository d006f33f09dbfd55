"""Doors to the keyed state of a stream: its snapshot, and one key."""

from typing import Any

import orjson
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access.conditions import if_match, only_new
from eventhub.access.fields import ObjectField
from eventhub.access.names import valid_name
from eventhub.access.schema import PAGE, ZONE, Operation, documented
from eventhub.access.view import ManagementView, actor_of, read_page
from eventhub.event.inbound import EventIn, parse
from eventhub.event.json_codec import time_text
from eventhub.eventlog.errors import Changed
from eventhub.eventlog.state import KeyState
from eventhub.streams import state
from eventhub.streams.errors import NotKeyed, UnknownKey
from eventhub.streams.serializers import CursorSerializer
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType

_NAMED = (errors.InvalidName, errors.FieldTooLong, errors.UnknownStream, NotKeyed)
_EVENT = (
    *(errors.EmptyBatch, errors.BatchTooLarge, errors.EventTooLarge, errors.MissingField),
    *(errors.UnknownChannel, errors.InvalidMask, TypeViolation, TypeTooCostly, UndeclaredType),
    Changed,
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


class KeyStateSerializer(serializers.Serializer):
    key = serializers.CharField()
    segment = serializers.UUIDField()
    sequence = serializers.IntegerField(help_text="Of the key's latest event; its ETag.")
    appended_at = serializers.DateTimeField()
    event = ObjectField(help_text="As it was emitted.")


class SnapshotSerializer(serializers.Serializer):
    stream = serializers.CharField()
    cursor = CursorSerializer(help_text="The events after it bring what has changed since.")
    items = KeyStateSerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="Pass as `after` for the next page; null at the end."
    )


class State(ManagementView):
    """The latest event of each key, as of one sequence."""

    queries = frozenset({"after", "limit"})

    @documented(
        Operation(
            "Show the state of a keyed stream; its pages are one snapshot",
            {200: SnapshotSerializer},
            (*_NAMED, errors.InvalidField, errors.SegmentMismatch),
            parameters=(ZONE, *PAGE),
        )
    )
    def get(self, request: Request, stream: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        page = read_page(request)
        found = state.read_page(
            actor=actor, stream=stream, asked=state.Asked(page.after, page.limit)
        )
        self.stands_at(found.cursor)
        items = [_json(item) for item in found.items]
        cursor = found.cursor._asdict()
        return Response({"stream": stream, "cursor": cursor, "items": items, "next": found.next})


class OneKey(ManagementView):
    """The state of one key, which may hold slashes."""

    @documented(
        Operation("Show the state of a key", {200: KeyStateSerializer}, (*_NAMED, UnknownKey))
    )
    def get(self, request: Request, stream: str, key: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        found, place = state.find_key(actor=actor, stream=stream, key=key)
        self.stands_at(place)
        return _tagged(found)

    @documented(
        Operation(
            "Put the state of a key; the event in the body is appended to the stream",
            {200: KeyStateSerializer, 201: KeyStateSerializer},
            (*_NAMED, *_EVENT),
            {"application/json": {"$ref": "#/components/schemas/EventIn"}},
            (ZONE, _MATCH, _NONE_MATCH),
        )
    )
    def put(self, request: Request, stream: str, key: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        since = if_match(request)
        found, new = state.put_key(
            actor=actor,
            stream=stream,
            key=key,
            event=_event(request),
            expected=0 if only_new(request) else since,
        )
        return _tagged(found, 201 if new else 200)

    @documented(
        Operation(
            "End the state of a key; a tombstone is appended to the stream",
            {204: None},
            (*_NAMED, UnknownKey, Changed),
            parameters=(ZONE, _MATCH),
        )
    )
    def delete(self, request: Request, stream: str, key: str) -> Response:
        actor = actor_of(request)
        valid_name(stream, field="stream")
        state.delete_key(actor=actor, stream=stream, key=key, expected=if_match(request))
        return Response(status=204)


def _event(request: Request) -> EventIn:
    """The body, read as the emit door reads it."""
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    events = parse(request._request.body, media_type)
    if len(events) != 1:
        raise errors.BatchTooLarge("The state of a key is one event.", events_max=1)
    return events[0]


def _json(found: KeyState) -> dict[str, Any]:
    stored = found.stored
    return {
        "key": found.key,
        **stored.cursor._asdict(),
        "appended_at": time_text(stored.appended_at_us),
        "event": orjson.loads(stored.json),
    }


def _tagged(found: KeyState, status: int = 200) -> Response:
    return Response(_json(found), status, headers={"ETag": f'"{found.stored.sequence}"'})
