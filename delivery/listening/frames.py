"""What a reader is told, in the form of each door: websocket messages in JSON and protobuf, whose
event frames end with the stored bytes (EMC-31), server-sent events, lines, pages. Plain module.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import orjson

from eventhub.event import cloudevents, event_pb2
from eventhub.event.json_codec import time_text
from eventhub.eventlog.stored import StoredEvent

JSON_SUBPROTOCOL = "eventhub.v1.json"
PROTOBUF_SUBPROTOCOL = "eventhub.v1.protobuf"
SUBPROTOCOLS = (JSON_SUBPROTOCOL, PROTOBUF_SUBPROTOCOL)

_server_frame = event_pb2.ServerFrame
_EVENT_BYTES_TAG = b"\x7a"  # field 15, length-delimited: the last of EventFrame
_FRAME_EVENT_TAG = b"\x0a"  # field 1, length-delimited: ServerFrame.event

Frame = str | bytes
# appended after the listen began; missed by a reader that resumes; replayed on demand (FOX-02)
Liveness = Literal["live", "recovery", "playback"]
_LIVENESS: dict[Liveness, event_pb2.Liveness] = {
    "live": event_pb2.LIVE,
    "recovery": event_pb2.RECOVERY,
    "playback": event_pb2.PLAYBACK,
}
T = TypeVar("T", covariant=True)


@dataclass(slots=True)
class Heading:
    """What one listen is told beside the event itself; who tells many events may use one again."""

    listener: str  # its name, as JSON; empty where a connection has one listen without a name
    prev: int
    liveness: Liveness
    registrations: Sequence[int] = ()  # of those that the listen names, the ones that matched
    latest_version: str = ""  # of the event's type, if newer than the event's (FOX-20)


class Form(Protocol[T]):
    """How a door says it. What is the same for all readers of an event is made once and shared."""

    def event(self, heading: Heading, stored: StoredEvent) -> T: ...

    def state(self, listener: str, key: str, stored: StoredEvent) -> T:
        """The latest event of a key, in a snapshot."""
        ...

    def message(self, fields: dict[str, Any]) -> T:
        """Anything else; its `op` says what."""
        ...


class JsonFrames:
    """Text frames."""

    def event(self, heading: Heading, stored: StoredEvent) -> str:
        return f'{{"op":"event",{_about(heading)}{shared_json(stored)}}}'

    def state(self, listener: str, key: str, stored: StoredEvent) -> str:
        named = f'"listener":{listener},' if listener else ""
        return f'{{"op":"state",{named}"key":{_text(key)},{shared_json(stored)}}}'

    def message(self, fields: dict[str, Any]) -> str:
        return orjson.dumps(fields).decode()


class ProtobufFrames:
    """Binary frames: ServerFrame messages. The header of the last event serves the next one of its
    segment: only numbers change in it, so it takes no more memory.
    """

    def __init__(self) -> None:
        self._header = event_pb2.EventFrame()
        self._listener = self._segment = ""  # those in it

    def event(self, heading: Heading, stored: StoredEvent) -> bytes:
        header = self._header
        if self._segment != stored.segment or self._listener != heading.listener:
            header = self._begin(heading.listener, stored.segment)
        header.sequence = stored.sequence
        header.prev = heading.prev
        header.liveness = _LIVENESS[heading.liveness]
        header.appended_at_us = stored.appended_at_us
        if heading.registrations or heading.latest_version:
            header = event_pb2.EventFrame.FromString(header.SerializeToString())
            header.registrations.extend(heading.registrations)
            header.latest_version = heading.latest_version
        head, payload = header.SerializeToString(), stored.payload
        size = varint(len(payload))
        whole = varint(len(head) + 1 + len(size) + len(payload))
        return b"".join((_FRAME_EVENT_TAG, whole, head, _EVENT_BYTES_TAG, size, payload))

    def _begin(self, listener: str, segment: str) -> event_pb2.EventFrame:
        name = orjson.loads(listener) if listener else ""
        self._header = event_pb2.EventFrame(listener=name, segment=segment)
        self._listener, self._segment = listener, segment
        return self._header

    def state(self, listener: str, key: str, stored: StoredEvent) -> bytes:
        made: bytes = _server_frame(message=_json.state(listener, key, stored)).SerializeToString()
        return made

    def message(self, fields: dict[str, Any]) -> bytes:
        made: bytes = _server_frame(message=_json.message(fields)).SerializeToString()
        return made


class DelimitedFrames(ProtobufFrames):
    """Binary frames in one stream of bytes, each behind its length as a varint."""

    def event(self, heading: Heading, stored: StoredEvent) -> bytes:
        return _delimited(super().event(heading, stored))

    def state(self, listener: str, key: str, stored: StoredEvent) -> bytes:
        return _delimited(super().state(listener, key, stored))

    def message(self, fields: dict[str, Any]) -> bytes:
        return _delimited(super().message(fields))


class SseFrames:
    """Server-sent events: the id is the cursor from which an EventSource resumes, the data the JSON
    frame. Errors are called `problem`, because `error` is the browser's own.
    """

    def event(self, heading: Heading, stored: StoredEvent) -> bytes:
        frame = _json.event(heading, stored)
        return f"id: {stored.segment}:{stored.sequence}\nevent: event\ndata: {frame}\n\n".encode()

    def state(self, listener: str, key: str, stored: StoredEvent) -> bytes:
        return f"event: state\ndata: {_json.state(listener, key, stored)}\n\n".encode()

    def message(self, fields: dict[str, Any]) -> bytes:
        name = "problem" if fields["op"] == "error" else fields["op"]
        cursor = fields.get("cursor")
        id = "" if cursor is None else f"id: {cursor['segment']}:{cursor['sequence']}\n"
        return f"{id}event: {name}\ndata: {_json.message(fields)}\n\n".encode()


class ItemFrames:
    """The items of a page, as JSON."""

    def event(self, heading: Heading, stored: StoredEvent) -> bytes:
        return f"{{{_about(heading)}{shared_json(stored)}}}".encode()

    def state(self, listener: str, key: str, stored: StoredEvent) -> bytes:
        return _json.state(listener, key, stored).encode()

    def message(self, fields: dict[str, Any]) -> bytes:
        return orjson.dumps(fields)


class CloudEventFrames(ItemFrames):
    """The items of a page as CloudEvents; the cursor is the id of those that have none."""

    def event(self, heading: Heading, stored: StoredEvent) -> bytes:
        return cloudevents.structured(stored.event, f"{stored.segment}:{stored.sequence}")


class LineFrames(ItemFrames):
    """The items of a page, each on a line of its own."""

    def event(self, heading: Heading, stored: StoredEvent) -> bytes:
        return super().event(heading, stored) + b"\n"

    def state(self, listener: str, key: str, stored: StoredEvent) -> bytes:
        return super().state(listener, key, stored) + b"\n"

    def message(self, fields: dict[str, Any]) -> bytes:
        return super().message(fields) + b"\n"


Frames = JsonFrames | ProtobufFrames
_json = JsonFrames()


def frames_for(subprotocol: str | None) -> Frames:
    """The frames of a subprotocol; JSON without one."""
    return ProtobufFrames() if subprotocol == PROTOBUF_SUBPROTOCOL else JsonFrames()


def _about(heading: Heading) -> str:
    named = f'"listener":{heading.listener},' if heading.listener else ""
    matched = ""
    if heading.registrations:
        matched = f'"registrations":[{",".join(map(str, heading.registrations))}],'
    latest = f'"latest_version":"{heading.latest_version}",' if heading.latest_version else ""
    return f'{named}"prev":{heading.prev},"liveness":"{heading.liveness}",{latest}{matched}'


def _text(text: str) -> str:
    return orjson.dumps(text).decode()


def shared_json(stored: StoredEvent) -> str:
    """The part of an event's frame that is the same for all its readers, on one line."""
    if stored.frame_json is None:
        event = stored.json
        if "\n" in event or "\r" in event:  # a body that came as bytes: between its tokens only
            event = event.replace("\n", " ").replace("\r", " ")
        stored.frame_json = (
            f'"segment":"{stored.segment}","sequence":{stored.sequence},'
            f'"appended_at":"{time_text(stored.appended_at_us)}","event":{event}'
        )
    return stored.frame_json


def varint(number: int) -> bytes:
    """A number as protobuf writes lengths."""
    return _VARINTS[number] if number < _VARINTS_KNOWN else _long_varint(number)


def _long_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_VARINTS_KNOWN = 2_048  # lengths of most events
_VARINTS = tuple(_long_varint(number) for number in range(_VARINTS_KNOWN))


def _delimited(frame: bytes) -> bytes:
    return varint(len(frame)) + frame
