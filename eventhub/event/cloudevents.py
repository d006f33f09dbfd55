"""CloudEvents 1.0 over HTTP, in and out: structured, binary and batch. Plain module.

`id`, `source`, `type`, `subject`, `time` and the data are the event's own `id`, `node`, `type`,
`key`, `time` and body. What CloudEvents has no attribute for is an extension: `domain`, the
registered ones (correlation, causation, expiry, tracing), and names that begin with `eh`. An
extension that is none of them is one of the event's `attributes`, and back.

Source: the specifications cloudevents/spec.md, json-format.md and bindings/http-protocol-binding.md
of version 1.0.2.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import msgspec
import orjson

from eventhub.base import errors, limits
from eventhub.event import extensions
from eventhub.event.envelope import Event
from eventhub.event.extensions import from_extensions, to_extensions
from eventhub.event.identity import EventId
from eventhub.event.inbound import EventIn, check_json, refuse_json
from eventhub.event.json_codec import time_text

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_JSON = "application/json"
_BYTES = "application/octet-stream"  # of data whose type is not said
_VERSION = "1.0"
_CORE = ("id", "source", "type", "subject", "time")
_DATA = ("specversion", "datacontenttype", "data", "data_base64")

# What a CloudEvent carries of an event; the rest is dropped: `source`, the client that emitted it,
# is set by the hub that takes it, and an id object becomes a text.
CARRIES = frozenset(
    {"id", "node", "type", "key", "time_us", "body", "content_type"} | extensions.CARRIES
)


class Message(NamedTuple):
    """An event as an HTTP message."""

    headers: list[tuple[str, str]]  # with Content-Type
    body: bytes


# --- in ---


def read_structured(body: bytes) -> EventIn:
    """The event of a request in structured mode. Raises BadRequest's kin with field."""
    return _event(_object(_json(body)))


def read_batch(body: bytes) -> list[EventIn]:
    """The events of a batch. Raises BadRequest's kin with index and field."""
    found = _json(body)
    if not isinstance(found, list):
        raise errors.InvalidField("A batch is an array of events.")
    if len(found) > limits.BATCH_EVENTS_MAX:
        raise errors.BatchTooLarge(events=len(found), events_max=limits.BATCH_EVENTS_MAX)
    events = []
    for index, item in enumerate(found):
        try:
            events.append(_event(_object(item)))
        except errors.EventHubError as error:
            error.index = index
            raise
    return events


def read_binary(headers: Mapping[str, str], content_type: str, body: bytes) -> EventIn:
    """The event of a request in binary mode. `headers`: those that begin with `ce-`, by their
    names without it, in lower case. Raises BadRequest's kin with field.
    """
    found: dict[str, Any] = {name: _header_value(name, text) for name, text in headers.items()}
    for name in ("data", "data_base64", "datacontenttype"):
        if name in found:
            raise errors.InvalidField("Not an attribute of the binary mode.", field=f"ce-{name}")
    if content_type:
        found["datacontenttype"] = content_type
    return _event(found, body if body or content_type else None)


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        refuse_json(error)


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise errors.InvalidField("An event is a JSON object.")
    return found


def _header_value(name: str, text: str) -> str:
    """What a header's value stands for: it may be quoted, and percent-encoded as UTF-8."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise errors.InvalidUtf8(field=f"ce-{name}") from None


_EXTENSION_NAME = re.compile(r"[a-z0-9]+")


def _event(found: dict[str, Any], data: bytes | None = None) -> EventIn:
    """`data`: the body of a binary message."""
    _check_core(found)
    fields = {"node": found["source"], **from_extensions(_others(found))}
    fields |= {"id": found["id"], "type": found["type"]}
    fields |= {to: found[name] for name, to in _OPTIONAL.items() if found.get(name) is not None}
    content_type = found.get("datacontenttype") or ""
    if not isinstance(content_type, str):
        raise errors.InvalidField("A media type.", field="datacontenttype")
    if data is None:
        _add_data(fields, found, content_type)
    elif _is_json(content_type):
        fields["body"] = _json(data)
    else:
        _add_bytes(fields, data, content_type)
    try:
        return msgspec.convert(fields, EventIn)
    except msgspec.ValidationError as error:
        try:
            refuse_json(error)
        except errors.EventHubError as refusal:
            refusal.field = _named(refusal.field)
            raise


def _check_core(found: dict[str, Any]) -> None:
    if found.get("specversion") != _VERSION:
        raise errors.InvalidField("This hub speaks CloudEvents 1.0.", field="specversion")
    for name in _CORE:
        value = found.get(name)
        if value is None and name in ("id", "source", "type"):
            raise errors.MissingField(field=name)
        if value is not None and (not isinstance(value, str) or not value):
            raise errors.InvalidField("A text that is not empty.", field=name)


def _others(found: dict[str, Any]) -> dict[str, Any]:
    others = {}
    for name, value in found.items():
        if name in _CORE or name in _DATA or value is None:
            continue
        if not _EXTENSION_NAME.fullmatch(name):
            raise errors.UnknownField("A name is of a-z and 0-9.", field=name[:100])
        if not isinstance(value, str | bool | int):
            raise errors.InvalidField("A text, a whole number or a boolean.", field=name)
        others[name] = value
    return others


_OPTIONAL = {"subject": "key", "time": "time"}


def _named(field: str | None) -> str | None:
    """The name that the caller knows a field by."""
    if field is None:
        return None
    own = {"node": "source", "key": "subject"}
    return own.get(field) or extensions.name_of(field)


def _add_data(fields: dict[str, Any], found: dict[str, Any], content_type: str) -> None:
    """The data of a structured event: any JSON, a text of another type, or base64."""
    coded = found.get("data_base64")
    if coded is not None:
        if not isinstance(coded, str):
            raise errors.InvalidField("Base64.", field="data_base64")
        if found.get("data") is not None:
            raise errors.InvalidField("Give `data` or `data_base64`, not both.", field="data")
        fields["body_base64"] = coded
        fields["content_type"] = content_type or _BYTES
    elif "data" not in found:
        if content_type:
            raise errors.MissingField("A `datacontenttype` is that of data.", field="data")
    elif not content_type or _is_json(content_type):
        fields["body"] = found["data"]
    else:
        data = found["data"]
        as_text = isinstance(data, str) and not content_type.endswith("+json")
        written = data.encode() if as_text else check_json(data, "data", limits.EVENT_BYTES_MAX)
        _add_bytes(fields, written, content_type)


def _add_bytes(fields: dict[str, Any], data: bytes, content_type: str) -> None:
    fields["body_base64"] = extensions.base64_text(data)
    fields["content_type"] = content_type or _BYTES


# --- out ---


def structured(event: Event, place: str) -> bytes:
    """The event as JSON. `place`, its cursor as a text, is its id if it has none of its own."""
    found: dict[str, Any] = {"specversion": _VERSION, **_attributes(event, place)}
    if event.body is not None:
        found["datacontenttype"] = event.content_type
        if event.content_type == _JSON:
            found["data"] = orjson.Fragment(event.body)
        else:
            found["data_base64"] = extensions.base64_text(event.body)
    return orjson.dumps(found)


def batch(events: Iterable[tuple[Event, str]]) -> bytes:
    """Several events, each with its place, as one JSON array."""
    return b"[" + b",".join(structured(event, place) for event, place in events) + b"]"


def binary(event: Event, place: str) -> Message:
    """The event with its attributes as headers and its body as it is. What would not fit into
    headers that servers take is given in structured mode.
    """
    attributes = _attributes(event, place, typed=False)
    headers = [("ce-specversion", _VERSION)]
    headers += [(f"ce-{name}", _percent(_text(value))) for name, value in attributes.items()]
    size = sum(len(name) + len(text) for name, text in headers)
    if size > limits.CE_HEADERS_BYTES_MAX or not _MEDIA_TYPE.fullmatch(event.content_type):
        return Message([("Content-Type", STRUCTURED)], structured(event, place))
    if event.body is not None:
        headers.append(("Content-Type", event.content_type))
    return Message(headers, event.body or b"")


def _attributes(event: Event, place: str, *, typed: bool = True) -> dict[str, Any]:
    source = quote(event.node, safe=_URI) or "/"
    found: dict[str, Any] = {"id": _id(event, place), "source": source, "type": event.type}
    if event.key:
        found["subject"] = event.key
    if event.time_us:
        found["time"] = time_text(event.time_us)
    if source != event.node:
        found["ehnode"] = event.node
    return {**found, **to_extensions(event, typed=typed)}


_MEDIA_TYPE = re.compile(r"[ -~]*")
_URI = "-._~:/?#[]@!$&'()*+,;=%"  # what a URI reference is made of, beside letters and digits


def _id(event: Event, place: str) -> str:
    if isinstance(event.id, EventId):
        return f"{event.id.timestamp_us}-{event.id.incarnation}-{event.id.sequence}"
    return event.id or place


def _is_json(content_type: str) -> bool:
    essence = content_type.partition(";")[0].strip().lower()
    return essence == _JSON


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


def _percent(text: str) -> str:
    return quote(text, safe=_PLAIN)
