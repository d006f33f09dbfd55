"""Responses of the events route in one piece: a page as JSON, lines, protobuf or CloudEvents, with
its headers. Plain module.
"""

from typing import Annotated, NotRequired, TypedDict

import orjson
from msgspec import Meta

from delivery.listening import query
from delivery.listening.frames import (
    CloudEventFrames,
    DelimitedFrames,
    FrameFormat,
    ItemFrames,
    LineFrames,
    Liveness,
)
from delivery.listening.query import EventsRequest
from eventhub.event.json_codec import EventJson
from eventhub.event.json_types import Int64, Time
from eventhub.eventlog.backward_cursors import StreamEnds
from eventhub.eventlog.start_positions import cursor_text
from eventhub.eventlog.stored import Cursor, CursorJson
from eventhub.http.messages import Headers, Response

SSE_HEADERS: Headers = [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


class EventItemJson(CursorJson):
    """An event of a page, with its position in the stream."""

    prev: Annotated[Int64, Meta(description="Proves that nothing is missing before it.")]
    liveness: Liveness
    signature: NotRequired[Annotated[str, Meta(description="If it was requested.")]]
    appended_at: Time
    event: EventJson


class BoundsJson(TypedDict):
    """The cursor to continue from, and the first and last event of the stream."""

    cursor: CursorJson
    head: Int64
    first: Int64


class EventPageJson(BoundsJson):
    """Events of a stream."""

    stream: str
    events: list[EventItemJson]


_FORMATS: dict[bytes, FrameFormat[bytes]] = {
    query.JSON: ItemFrames(),
    query.LINES: LineFrames(),
    query.PROTOBUF: DelimitedFrames(),
    query.CLOUDEVENTS: CloudEventFrames(),
}


def format_of(media_type: bytes) -> FrameFormat[bytes]:
    """Return the format of a media type."""
    return _FORMATS[media_type]


def page_response(
    request: EventsRequest, items: list[bytes], cursor: Cursor, ends: StreamEnds
) -> Response:
    """Return a page: JSON around its items, or its items and a last line. `cursor`: its end."""
    bounds: BoundsJson = {
        "cursor": cursor.json(),
        "head": ends.head.sequence,
        "first": ends.first,
    }
    headers = [(b"eventhub-cursor", cursor_text(cursor).encode())]
    if request.media_type == query.CLOUDEVENTS:
        body = b"[%b]" % b",".join(items)
    elif request.media_type == query.JSON:
        stream = orjson.dumps(request.listen.stream)
        inside = b",".join(items)
        body = b'{"stream":%b,"events":[%b],%b' % (stream, inside, orjson.dumps(bounds)[1:])
    else:
        last = format_of(request.media_type).message({"op": "end", **bounds})
        body = b"".join([*items, last])
    return Response(200, body, headers, request.media_type, ends.head)
