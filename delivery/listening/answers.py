"""Answers of the listen door in one piece: a page as JSON, lines, protobuf or CloudEvents, with its
headers. Plain module.
"""

from typing import Annotated, TypedDict

import orjson
from msgspec import Meta

from delivery.listening import query
from delivery.listening.frames import (
    CloudEventFrames,
    DelimitedFrames,
    Form,
    ItemFrames,
    LineFrames,
    Liveness,
)
from delivery.listening.query import Asked
from eventhub.event.json_codec import EventJson
from eventhub.event.json_types import Int64, Time
from eventhub.eventlog.history import StreamEnds
from eventhub.eventlog.start_positions import cursor_text
from eventhub.eventlog.stored import Cursor, CursorJson
from eventhub.http.messages import Headers, Response


class TakenJson(CursorJson):
    """An event as a page has it, with its place in the stream."""

    prev: Annotated[Int64, Meta(description="Proves that nothing is missing before it.")]
    liveness: Liveness
    appended_at: Time
    event: EventJson


class BoundsJson(TypedDict):
    """Where to go on, and which events there are."""

    cursor: CursorJson
    head: Int64
    first: Int64


class EventPageJson(BoundsJson):
    """Events of a stream."""

    stream: str
    events: list[TakenJson]


_FORMS: dict[bytes, Form[bytes]] = {
    query.JSON: ItemFrames(),
    query.LINES: LineFrames(),
    query.PROTOBUF: DelimitedFrames(),
    query.CLOUDEVENTS: CloudEventFrames(),
}


def form_of(kind: bytes) -> Form[bytes]:
    """How events of a media type are written."""
    return _FORMS[kind]


def whole(asked: Asked, items: list[bytes], cursor: Cursor, ends: StreamEnds) -> Response:
    """A page: JSON around its items, or its items and a last line. `cursor`: where it ended."""
    bounds: BoundsJson = {
        "cursor": cursor.json(),
        "head": ends.head.sequence,
        "first": ends.first,
    }
    headers = [*position_headers(ends.head), (b"eventhub-cursor", cursor_text(cursor).encode())]
    if asked.kind == query.CLOUDEVENTS:
        body = b"[%b]" % b",".join(items)
    elif asked.kind == query.JSON:
        stream = orjson.dumps(asked.wish.stream)
        inside = b",".join(items)
        body = b'{"stream":%b,"events":[%b],%b' % (stream, inside, orjson.dumps(bounds)[1:])
    else:
        last = form_of(asked.kind).message({"op": "end", **bounds})
        body = b"".join([*items, last])
    return Response(200, body, headers, asked.kind)


def position_headers(head: Cursor) -> Headers:
    """The last sequence of a stream, and its segment."""
    return [
        (b"eventhub-sequence", str(head.sequence).encode()),
        (b"eventhub-segment", head.segment.encode()),
    ]
