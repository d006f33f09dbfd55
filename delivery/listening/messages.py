"""The messages of the websocket, as both sides write them; docs/session-protocol.md describes each.
Plain module.
"""

from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from delivery.listening.request import Chosen, StateWish, Wish, chosen
from eventhub.base import errors, limits
from eventhub.event.inbound import parse_mask, refuse_json
from eventhub.eventlog.read import Start
from eventhub.eventlog.start_positions import parse_start, parse_time
from eventhub.eventlog.stored import Cursor
from registrations.filter_source import FILTER_FIELDS

ListenerName = Annotated[str, Meta(min_length=1, max_length=64)]
# without NUL, which no database takes; whether there is such a stream is asked later
StreamName = Annotated[
    str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=r"^[^\0]*$")
]
Registrations = Annotated[
    list[Annotated[int, Meta(ge=1, le=2**63 - 1)]],
    Meta(min_length=1, max_length=limits.LISTEN_REGISTRATIONS_MAX),
]
_SEGMENT = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
Position = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class StartIn(Struct, forbid_unknown_fields=True):
    """The last event seen, or a time."""

    segment: Annotated[str, Meta(pattern=_SEGMENT)] | None = None
    sequence: Position | None = None
    time: str | None = None


class Hello(Struct, tag_field="op", tag="hello", forbid_unknown_fields=True):
    """A client's greeting: who it is, for the operator's eyes."""

    agent: Annotated[str, Meta(max_length=200)] = ""


class ListenIn(
    Struct, tag_field="op", tag="listen", forbid_unknown_fields=True, rename={"start": "from"}
):
    """Begin to listen. `window`: so many events may be unacknowledged; none: no acks are needed."""

    listener: ListenerName
    stream: StreamName
    start: str | StartIn = "now"
    mask: int | str | list[str] | None = None
    domain: Any = None
    type: Any = None
    attributes: Any = None
    application: Any = None
    language: Any = None
    filter: Any = None  # in that language: a text or JSON
    state: StateWish = "gap"
    window: Annotated[int, Meta(ge=1, le=limits.WINDOW_EVENTS_MAX)] | None = None
    registrations: Registrations | None = None  # instead of pairs: what these ask for
    body: Any = None  # named only to be refused: the body is opaque
    body_base64: Any = None


class Stop(Struct, tag_field="op", tag="stop", forbid_unknown_fields=True):
    """End a listen."""

    listener: ListenerName


class Ack(Struct, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """All events of the listen up to a sequence have been dealt with."""

    listener: ListenerName
    sequence: Position


class InterestIn(Struct, tag_field="op", tag="interest", forbid_unknown_fields=True):
    """Be told what is wanted of a stream, now and whenever that changes; of a shape, if one is
    given, whether anybody wants it.
    """

    interest: ListenerName
    stream: StreamName
    shape: Any = None
    audience: Any = None  # groups of clients, whose interest alone counts


class Still(Struct, tag_field="op", tag="still", forbid_unknown_fields=True):
    """Is what was told the truth at this moment? Answered with its tag, after what changed."""

    interest: ListenerName
    id: Annotated[str, Meta(max_length=64)] = ""


class Forget(Struct, tag_field="op", tag="forget", forbid_unknown_fields=True):
    """Be told no more of an interest."""

    interest: ListenerName


class Ping(Struct, tag_field="op", tag="ping", forbid_unknown_fields=True):
    """Answered with a pong of the same `id`."""

    id: Annotated[str, Meta(max_length=64)] = ""


class Pong(Struct, tag_field="op", tag="pong", forbid_unknown_fields=True):
    """An answer to the hub's ping; nothing follows from it."""

    id: Annotated[str, Meta(max_length=64)] = ""


Incoming = Hello | ListenIn | Stop | Ack | InterestIn | Still | Forget | Ping | Pong
_decoder = msgspec.json.Decoder(Incoming)


def parse_message(text: str | bytes) -> Incoming:
    """A client's message. Raises BadRequest's kin with the field."""
    if len(text) > limits.MESSAGE_BYTES_MAX:
        raise errors.BodyTooLarge(bytes_max=limits.MESSAGE_BYTES_MAX)
    try:
        message: Incoming = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _refuse(error)
    return message


def named(message: Incoming) -> dict[str, str]:
    """What a message is about, as the answer to it names that."""
    names = {name: getattr(message, name, None) for name in ("listener", "interest")}
    return {name: value for name, value in names.items() if value is not None}


def _refuse(error: Exception) -> NoReturn:
    text = str(error)
    if "Invalid value" in text and "$.op" in text:
        raise errors.UnknownOperation(field="op") from None
    refuse_json(error)


def wish_of(message: ListenIn) -> Wish:
    """What a listen asks for. Raises InvalidCursor, InvalidMask, InvalidField's kin."""
    pairs, filter = _chosen(message)
    return Wish(
        stream=message.stream,
        start=_start(message.start),
        mask=None if message.mask is None else parse_mask(message.mask),
        pairs=pairs,
        filter=filter,
        registrations=tuple(message.registrations or ()),
        state=message.state,
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


def _chosen(message: ListenIn) -> Chosen:
    """A `body` among them is an error."""
    fields = {
        name: value
        for name in (*FILTER_FIELDS, "body", "body_base64")
        if (value := getattr(message, name)) is not None
    }
    return chosen(fields, registrations=message.registrations is not None)
