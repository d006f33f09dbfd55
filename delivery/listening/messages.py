"""The messages that clients send over a websocket; docs/session-protocol.md describes each. Plain
module.
"""

from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from delivery.listening.request import (
    EventSelection,
    ListenRequest,
    SnapshotMode,
    parse_selection,
)
from eventhub.base import errors, limits
from eventhub.event.inbound import NO_NUL, parse_mask, refuse_json
from eventhub.eventlog.read import Start
from eventhub.eventlog.start_positions import parse_start, parse_time
from eventhub.eventlog.stored import Cursor
from registrations.filter_source import FILTER_FIELDS

ListenerName = Annotated[str, Meta(min_length=1, max_length=64)]
# whether a stream or a session of this name exists is checked later
ResourceName = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=NO_NUL)]
StreamName = ResourceName
SessionName = ResourceName
Sequences = Annotated[
    list[Annotated[int, Meta(ge=0, le=2**63 - 1)]], Meta(max_length=limits.SESSION_WINDOW_MAX)
]
Registrations = Annotated[
    list[Annotated[int, Meta(ge=1, le=2**63 - 1)]],
    Meta(min_length=1, max_length=limits.LISTEN_REGISTRATIONS_MAX),
]
_EVENT = {"$ref": "#/components/schemas/EventIn"}
_EVENTS = {"anyOf": [_EVENT, {"type": "array", "items": _EVENT}]}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_AnyText = Annotated[Any, Meta(extra_json_schema={"type": "string"})]  # checked with the filter
Refused = Annotated[Any, Meta(extra_json_schema={"not": {}})]  # present only to be refused
_SEGMENT = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
Position = Annotated[int, Meta(ge=0, le=2**63 - 1)]
SequenceNumber = Annotated[int, Meta(ge=1, le=2**63 - 1)]
SequenceNumbers = Annotated[
    list[SequenceNumber], Meta(min_length=1, max_length=limits.RESEND_SEQUENCES_MAX)
]


class StartIn(Struct, forbid_unknown_fields=True):
    """The last event received, or a time."""

    segment: Annotated[str, Meta(pattern=_SEGMENT)] | None = None
    sequence: Position | None = None
    time: str | None = None


class Hello(Struct, tag_field="op", tag="hello", forbid_unknown_fields=True):
    """The client's greeting; `agent` names its software for operators."""

    agent: Annotated[str, Meta(max_length=200)] = ""


class ListenMessage(
    Struct, tag_field="op", tag="listen", forbid_unknown_fields=True, rename={"start": "from"}
):
    """Starts a listener. `window`: the number of events that may be unacknowledged; without it, no
    acks are needed.
    """

    listener: ListenerName
    stream: StreamName
    start: str | StartIn = "now"
    mask: int | str | list[str] | None = None
    domain: _AnyText = None
    type: _AnyText = None
    attributes: Annotated[Any, Meta(extra_json_schema={"type": "object"})] = None
    application: _AnyText = None
    language: _AnyText = None
    filter: Annotated[Any, Meta(description="In that language: text or JSON.")] = None
    state: SnapshotMode = "gap"
    window: Annotated[int, Meta(ge=1, le=limits.WINDOW_EVENTS_MAX)] | None = None
    signature: bool = False
    registrations: Registrations | None = None  # instead of a filter
    body: Refused = None  # the body is opaque
    body_base64: Refused = None


class Stop(Struct, tag_field="op", tag="stop", forbid_unknown_fields=True):
    """Ends a listener."""

    listener: ListenerName


class Ack(Struct, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """Acknowledges events of a listener, or of a stream of a session: all up to a sequence, and of
    a session also single ones. With `id`, the answer follows when that is stored.
    """

    listener: ListenerName | None = None
    session: SessionName | None = None
    stream: StreamName | None = None
    sequence: Position | None = None
    sequences: Sequences | None = None
    id: Annotated[str, Meta(max_length=64)] | None = None

    def require_complete(self) -> None:
        """Raise MissingField or UnknownField unless it has the fields of one of its two forms."""
        if self.session is None:
            required: tuple[str, ...] = ("listener", "sequence")
            other: tuple[str, ...] = ("stream", "sequences", "id")
        else:
            required = ("stream",) if self.sequences is not None else ("stream", "sequence")
            other = ("listener",)
        for name in required:
            if getattr(self, name) is None:
                raise errors.MissingField(field=name)
        for name in other:
            if getattr(self, name) is not None:
                raise errors.UnknownField(field=name)


class Nak(Struct, tag_field="op", tag="nak", forbid_unknown_fields=True):
    """Requests delivery of events of a session again, which could not be processed."""

    session: SessionName
    stream: StreamName
    sequences: Sequences


class Connect(Struct, tag_field="op", tag="connect", forbid_unknown_fields=True):
    """Connects a consumer session of the client: its events are delivered over this socket."""

    session: SessionName


class Disconnect(Struct, tag_field="op", tag="disconnect", forbid_unknown_fields=True):
    """Ends the delivery to a session over this socket."""

    session: SessionName


class Credit(Struct, tag_field="op", tag="credit", forbid_unknown_fields=True):
    """Sets how many events of a session may be unacknowledged on this connection."""

    session: SessionName
    events: Annotated[int, Meta(ge=1, le=limits.SESSION_WINDOW_MAX)]


class EmitMessage(Struct, tag_field="op", tag="emit", forbid_unknown_fields=True):
    """Emits events into a stream, all or none; through a supplier session if it names one."""

    stream: StreamName
    events: Annotated[msgspec.Raw, Meta(extra_json_schema=_EVENTS)]
    session: SessionName | None = None
    id: Annotated[str, Meta(max_length=64)] = ""


class ResendMessage(
    Struct, tag_field="op", tag="resend", forbid_unknown_fields=True, rename={"start": "from"}
):
    """Requests events again that the listener lost: a range of sequences, both ends included, or
    single ones.
    """

    listener: ListenerName
    start: SequenceNumber | None = None
    to: SequenceNumber | None = None
    sequences: SequenceNumbers | None = None


class InterestMessage(Struct, tag_field="op", tag="interest", forbid_unknown_fields=True):
    """Watches the interest in a stream: it is sent now and after each change. With a shape: whether
    anyone is interested in events of that shape.
    """

    interest: ListenerName
    stream: StreamName
    shape: Annotated[Any, Meta(extra_json_schema={"type": "object"})] = None
    audience: Annotated[Any, Meta(extra_json_schema=_TEXTS)] = None  # groups of clients


class Confirm(Struct, tag_field="op", tag="confirm", forbid_unknown_fields=True):
    """Requests confirmation that the interest last sent is current: a change is sent first, then
    its tag.
    """

    interest: ListenerName
    id: Annotated[str, Meta(max_length=64)] = ""


class Forget(Struct, tag_field="op", tag="forget", forbid_unknown_fields=True):
    """Ends the watch of an interest."""

    interest: ListenerName


class Ping(Struct, tag_field="op", tag="ping", forbid_unknown_fields=True):
    """Requests a pong with the same `id`."""

    id: Annotated[str, Meta(max_length=64)] = ""


class Pong(Struct, tag_field="op", tag="pong", forbid_unknown_fields=True):
    """Answers the hub's ping; it has no effect."""

    id: Annotated[str, Meta(max_length=64)] = ""


Incoming = (
    Hello
    | ListenMessage
    | Stop
    | Ack
    | Nak
    | Connect
    | Disconnect
    | Credit
    | EmitMessage
    | ResendMessage
    | InterestMessage
    | Confirm
    | Forget
    | Ping
    | Pong
)
_decoder = msgspec.json.Decoder(Incoming)


def parse_message(text: str | bytes) -> Incoming:
    """Parse a client's message. Raises subclasses of BadRequest with the field."""
    if len(text) > limits.MESSAGE_BYTES_MAX:
        raise errors.BodyTooLarge(bytes_max=limits.MESSAGE_BYTES_MAX)
    try:
        message: Incoming = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _refuse(error)
    return message


def subject_of(message: Incoming) -> dict[str, str]:
    """Return the listener, session or interest that a message names, and the id of one that has an
    answer, as fields of the answer.
    """
    names = ["listener", "interest", "session"]
    if isinstance(message, Ack | Nak | EmitMessage):
        names += ["stream", "id"]
    fields = {name: getattr(message, name, None) for name in names}
    return {name: value for name, value in fields.items() if value}


def _refuse(error: Exception) -> NoReturn:
    text = str(error)
    if "Invalid value" in text and "$.op" in text:
        raise errors.UnknownOperation(field="op") from None
    refuse_json(error)


def request_of(message: ListenMessage) -> ListenRequest:
    """Return the request of a listen message. Raises InvalidCursor, InvalidMask, and subclasses of
    InvalidField.
    """
    pairs, filter = _selection(message)
    return ListenRequest(
        stream=message.stream,
        start=_start(message.start),
        mask=None if message.mask is None else parse_mask(message.mask),
        pairs=pairs,
        filter=filter,
        registrations=tuple(message.registrations or ()),
        state=message.state,
        signature=message.signature,
        transport="websocket",
    )


def _start(start: str | StartIn) -> Start:
    if isinstance(start, str):
        return parse_start(start)
    match (start.segment, start.sequence, start.time):
        case (str(segment), int(sequence), None):
            return Cursor(segment.lower(), sequence)
        case (None, None, str(time)):
            return parse_time(time)
    missing = [name for name in ("segment", "sequence") if getattr(start, name) is None]
    if start.time is None and len(missing) == 1:
        raise errors.MissingField(field=f"from.{missing[0]}")
    raise errors.InvalidCursor(field="from")


def _selection(message: ListenMessage) -> EventSelection:
    """Parse its filter fields; a `body` among them is an error."""
    fields = {
        name: value
        for name in (*FILTER_FIELDS, "body", "body_base64")
        if (value := getattr(message, name)) is not None
    }
    return parse_selection(fields, registrations=message.registrations is not None)
