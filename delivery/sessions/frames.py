"""The hub's frames in the two subprotocols:

JSON text, and protobuf that ends with the stored bytes (EMC-31). Plain.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from eventhub.event import event_pb2
from eventhub.event.json_codec import time_text
from eventhub.eventlog.stored import Stored

JSON_SUBPROTOCOL = "eventhub.v1.json"
PROTOBUF_SUBPROTOCOL = "eventhub.v1.protobuf"
SUBPROTOCOLS = (JSON_SUBPROTOCOL, PROTOBUF_SUBPROTOCOL)

_header = event_pb2.EventFrame
_server_frame = event_pb2.ServerFrame
_EVENT_BYTES_TAG = b"\x7a"  # field 15, length-delimited: the last of EventFrame
_FRAME_EVENT_TAG = b"\x0a"  # field 1, length-delimited: ServerFrame.event

Frame = str | bytes


class Heading(NamedTuple):
    """What one listen is told beside the event itself."""

    listen: str  # its name, as JSON
    prev: int
    live: bool
    registrations: Sequence[int] = ()  # of those that the listen names, the ones that matched


class JsonFrames:
    """Text frames. What is the same for all readers of an event is made once and shared."""

    def event(self, heading: Heading, stored: Stored) -> Frame:
        liveness = "live" if heading.live else "recovery"
        named = ""
        if heading.registrations:
            named = f'"registrations":[{",".join(map(str, heading.registrations))}],'
        return (
            f'{{"op":"event","listen":{heading.listen},"prev":{heading.prev},'
            f'"liveness":"{liveness}",{named}{shared_json(stored)}}}'
        )

    def message(self, fields: dict[str, Any]) -> Frame:
        return orjson.dumps(fields).decode()


class ProtobufFrames:
    """Binary frames: ServerFrame messages."""

    def event(self, heading: Heading, stored: Stored) -> Frame:
        header = _header(
            listen=orjson.loads(heading.listen),
            segment=stored.segment,
            sequence=stored.sequence,
            prev=heading.prev,
            liveness=event_pb2.LIVE if heading.live else event_pb2.RECOVERY,
            appended_at_us=stored.appended_at_us,
            registrations=heading.registrations,
        ).SerializeToString()
        payload = stored.payload
        size = varint(len(payload))
        whole = len(header) + 1 + len(size) + len(payload)
        return b"".join((_FRAME_EVENT_TAG, varint(whole), header, _EVENT_BYTES_TAG, size, payload))

    def message(self, fields: dict[str, Any]) -> Frame:
        made: bytes = _server_frame(message=orjson.dumps(fields).decode()).SerializeToString()
        return made


Frames = JsonFrames | ProtobufFrames


def frames_for(subprotocol: str | None) -> Frames:
    """The frames of a subprotocol; JSON without one."""
    return ProtobufFrames() if subprotocol == PROTOBUF_SUBPROTOCOL else JsonFrames()


def shared_json(stored: Stored) -> str:
    """The part of an event's frame that is the same for all its readers."""
    if stored.frame_json is None:
        stored.frame_json = (
            f'"segment":"{stored.segment}","sequence":{stored.sequence},'
            f'"appended_at":"{time_text(stored.appended_at_us)}","event":{stored.json}'
        )
    return stored.frame_json


def varint(number: int) -> bytes:
    """A number as protobuf writes lengths."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
