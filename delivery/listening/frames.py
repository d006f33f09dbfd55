"""The formats of what is sent to readers: websocket messages in JSON and protobuf, whose event
frames end with the stored bytes (EMC-31), server-sent events, lines, pages. Plain module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import orjson

from delivery.bindings import bindings_json
from eventhub.base import limits
from eventhub.event import cloudevents, event_pb2
from eventhub.event.compiled import transcoder
from eventhub.event.json_codec import time_text
from eventhub.eventlog.stored import Cursor, StoredEvent

JSON_SUBPROTOCOL = "eventhub.v1.json"
PROTOBUF_SUBPROTOCOL = "eventhub.v1.protobuf"
SUBPROTOCOLS = (JSON_SUBPROTOCOL, PROTOBUF_SUBPROTOCOL)

_EVENT_BYTES_TAG = b"\x7a"  # field 15, length-delimited: the last of EventFrame
_FRAME_EVENT_TAG = b"\x0a"  # field 1, length-delimited: ServerFrame.event

Frame = str | bytes
# appended after the listener started; missed by a reader that resumes; replayed on demand (FOX-02)
Liveness = Literal["live", "recovery", "playback"]
LIVENESS: dict[Liveness, event_pb2.Liveness] = {
    "live": event_pb2.LIVE,
    "recovery": event_pb2.RECOVERY,
    "playback": event_pb2.PLAYBACK,
}
T = TypeVar("T", covariant=True)


class FrameSubject(NamedTuple):
    """What frames belong to: a listener of the connection, or a stream of a session; nothing for
    the only listener of a connection.
    """

    listener: str = ""
    session: str = ""
    stream: str = ""  # of the session

    @property
    def fields(self) -> dict[str, str]:
        """The fields of messages that name it."""
        return {name: value for name, value in self._asdict().items() if value}

    @property
    def json(self) -> str:
        """These fields as JSON members, each followed by a comma."""
        return "".join(f'"{name}":{_text(value)},' for name, value in self.fields.items())


NO_SUBJECT = FrameSubject()


@dataclass(slots=True)
class EventHeader:
    """The fields of a frame around its event. One object may serve many frames in turn."""

    subject: str  # FrameSubject.json
    prev: int
    liveness: Liveness
    registrations: Sequence[int] = ()  # those named by the listener that matched
    latest_version: str = ""  # of the event's type, if newer than the event's (FOX-20)
    signature: bool = False  # the listener requested the signatures of events (FOX-17)
    variables: Mapping[int, str] | None = None  # bound to the event, by registration (RDY-17)
    attempt: int = 0  # of a pull: how often the event was handed out; it has no `prev`


class CompiledForm(NamedTuple):
    """How the transcoder frames events that are nothing but new to their listener. `kind`: its
    `Form`; `segment`: the only one that it frames, if the frames are binary; `before` and `after`:
    what is around the rest of a frame.
    """

    kind: int
    segment: str
    before: bytes
    after: bytes = b""


class FrameFormat(Protocol[T]):
    """A format of frames. The part of an event that is equal for all readers is built once and
    shared.
    """

    def event(self, header: EventHeader, stored: StoredEvent) -> T: ...

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        """Return how the transcoder frames the events of a segment, for a FrameSubject.json; None
        if only `event` does.
        """
        ...

    def state(self, subject: str, key: str, stored: StoredEvent) -> T:
        """Return the frame of a key's latest event in a snapshot, for a FrameSubject.json."""
        ...

    def message(self, fields: dict[str, Any]) -> T:
        """Return any other message; its field `op` names the type."""
        ...


class JsonFrames:
    """Text frames with JSON."""

    def event(self, header: EventHeader, stored: StoredEvent) -> str:
        return f'{{"op":"event",{_about(header, stored)}{shared_json(stored)}}}'

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        return CompiledForm(0, "", f'{{"op":"event",{subject}'.encode(), b"}")

    def state(self, subject: str, key: str, stored: StoredEvent) -> str:
        return f'{{"op":"state",{subject}"key":{_text(key)},{shared_json(stored)}}}'

    def message(self, fields: dict[str, Any]) -> str:
        return orjson.dumps(fields).decode()


class ProtobufFrames:
    """Binary frames: ServerFrame messages. The frame of the last event, without it, is reused for
    the next event of the same segment, in which only numbers differ.
    """

    def __init__(self) -> None:
        self._frame = event_pb2.EventFrame()  # without its event
        self._begin: bytes | None = None  # its bytes before the numbers, if the rest is only these
        self._subject = self._segment = ""  # those of the frame

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        frame = self._frame
        if self._segment != stored.segment or self._subject != header.subject:
            frame = self._new_frame(header.subject, stored.segment)
        more = header.registrations or header.latest_version or header.signature
        liveness, prev = LIVENESS[header.liveness], header.prev
        if transcoder is not None and self._begin is not None and not more:
            numbers = (stored.sequence, prev, liveness, stored.appended_at_us)
            return transcoder.event_frame(self._begin, *numbers, stored.payload)
        frame.sequence = stored.sequence
        frame.prev = prev
        frame.liveness = liveness
        frame.appended_at_us = stored.appended_at_us
        if more:
            frame = event_pb2.EventFrame.FromString(frame.SerializeToString())
            frame.registrations.extend(header.registrations)
            frame.latest_version = header.latest_version
            frame.attempt = header.attempt  # a session's event always names registrations
            frame.signature = stored.signature if header.signature else ""
            frame.variables.update(header.variables or {})
        head, payload = frame.SerializeToString(), stored.payload
        size = varint(len(payload))
        whole = varint(len(head) + 1 + len(size) + len(payload))
        return b"".join((_FRAME_EVENT_TAG, whole, head, _EVENT_BYTES_TAG, size, payload))

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        if self._segment != segment or self._subject != subject:
            self._new_frame(subject, segment)
        return None if self._begin is None else CompiledForm(2, segment, self._begin)

    def _new_frame(self, subject: str, segment: str) -> event_pb2.EventFrame:
        fields = orjson.loads(f"{{{subject.removesuffix(',')}}}")
        self._frame = event_pb2.EventFrame(segment=segment, **fields)
        self._begin = None if "session" in fields else self._frame.SerializeToString()
        self._subject, self._segment = subject, segment
        return self._frame

    def state(self, subject: str, key: str, stored: StoredEvent) -> bytes:
        return _server_frame(_json.state(subject, key, stored))

    def message(self, fields: dict[str, Any]) -> bytes:
        return _server_frame(_json.message(fields))


class DelimitedFrames(ProtobufFrames):
    """Binary frames in one stream of bytes, each after its length as a varint."""

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        return _delimited(super().event(header, stored))

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        form = super().compiled(subject, segment)
        return None if form is None else form._replace(kind=3)

    def state(self, subject: str, key: str, stored: StoredEvent) -> bytes:
        return _delimited(super().state(subject, key, stored))

    def message(self, fields: dict[str, Any]) -> bytes:
        return _delimited(super().message(fields))


class SseFrames:
    """Server-sent events: the id is the cursor from which an EventSource resumes, the data is the
    JSON frame. Errors have the event name `problem`, because browsers use `error` themselves.
    """

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        frame = _json.event(header, stored)
        return f"id: {stored.segment}:{stored.sequence}\nevent: event\ndata: {frame}\n\n".encode()

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        return None

    def state(self, subject: str, key: str, stored: StoredEvent) -> bytes:
        return f"event: state\ndata: {_json.state(subject, key, stored)}\n\n".encode()

    def begin(self) -> bytes:
        return b"retry: %d\n\n" % limits.SSE_RETRY_MS

    def end(self) -> bytes:
        return b""

    def ping(self, position: dict[str, Any] | None, cursor: Cursor) -> bytes:
        """Return a keep-alive; it advances the cursor of a reader whose filter matches few
        events.
        """
        if position is None:
            return b":\n\n"
        return self.message({"op": "position", **position, "cursor": cursor._asdict()})

    def message(self, fields: dict[str, Any]) -> bytes:
        name = "problem" if fields["op"] == "error" else fields["op"]
        cursor = fields.get("cursor")
        id = "" if cursor is None else f"id: {cursor['segment']}:{cursor['sequence']}\n"
        return f"{id}event: {name}\ndata: {_json.message(fields)}\n\n".encode()


class ItemFrames:
    """The items of a page as JSON."""

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        return f"{{{_about(header, stored)}{shared_json(stored)}}}".encode()

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        return CompiledForm(1, "", f"{{{subject}".encode(), b"}")

    def state(self, subject: str, key: str, stored: StoredEvent) -> bytes:
        return _json.state(subject, key, stored).encode()

    def message(self, fields: dict[str, Any]) -> bytes:
        return orjson.dumps(fields)


class CloudEventFrames(ItemFrames):
    """The items of a page as CloudEvents; an event without an id gets its cursor as id."""

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        return cloudevents.structured(stored.event, f"{stored.segment}:{stored.sequence}")

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        return None


class LineFrames(ItemFrames):
    """The items of a page, one per line."""

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        return super().event(header, stored) + b"\n"

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        form = super().compiled(subject, segment)
        return None if form is None else form._replace(after=b"}\n")

    def state(self, subject: str, key: str, stored: StoredEvent) -> bytes:
        return super().state(subject, key, stored) + b"\n"

    def message(self, fields: dict[str, Any]) -> bytes:
        return super().message(fields) + b"\n"


Frames = JsonFrames | ProtobufFrames
_json = JsonFrames()


def frames_for(subprotocol: str | None) -> Frames:
    """Return the frames of a subprotocol; JSON without one."""
    return ProtobufFrames() if subprotocol == PROTOBUF_SUBPROTOCOL else JsonFrames()


def _about(header: EventHeader, stored: StoredEvent) -> str:
    matched = ""
    if header.registrations:
        matched = f'"registrations":[{",".join(map(str, header.registrations))}],'
        if header.variables:
            matched += f'"bindings":{bindings_json(header.variables, stored.cursor)},'
    latest = f'"latest_version":"{header.latest_version}",' if header.latest_version else ""
    signed = f'"signature":"{stored.signature}",' if header.signature else ""
    before = f'"attempt":{header.attempt},' if header.attempt else f'"prev":{header.prev},'
    about = f'{header.subject}{before}"liveness":"{header.liveness}",'
    return f"{about}{signed}{latest}{matched}"


def _text(text: str) -> str:
    return orjson.dumps(text).decode()


def shared_json(stored: StoredEvent) -> str:
    """Return the part of an event's frame that is equal for all readers, on one line."""
    if stored.frame_json is None:
        stored.frame_json = _transcoded(stored) or _encoded(stored)
    return stored.frame_json


def _transcoded(stored: StoredEvent) -> str | None:
    """Return `_encoded` from the stored bytes at once; None if that is not possible."""
    if transcoder is None:
        return None
    return transcoder.shared_json(
        stored.segment, stored.sequence, stored.appended_at_us, stored.payload
    )


def _encoded(stored: StoredEvent) -> str:
    event = stored.json
    if "\n" in event or "\r" in event:  # from a body emitted as bytes: only between its tokens
        event = event.replace("\n", " ").replace("\r", " ")
    return (
        f'"segment":"{stored.segment}","sequence":{stored.sequence},'
        f'"appended_at":"{time_text(stored.appended_at_us)}","event":{event}'
    )


def varint(number: int) -> bytes:
    """Encode a number as protobuf encodes lengths."""
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


def _server_frame(message: str) -> bytes:
    frame: bytes = event_pb2.ServerFrame(message=message).SerializeToString()
    return frame


def _delimited(frame: bytes) -> bytes:
    return varint(len(frame)) + frame
