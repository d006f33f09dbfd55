"""CloudEvents 1.0 over HTTP, read and written in structured, binary and batch mode. Plain module.

CloudEvents' `id`, `source`, `type`, `subject`, `time` and data map to the event's `id`, `node`,
`type`, `key`, `time` and body. Other fields are extensions: `domain`, the registered ones
(correlation, causation, expiry, tracing) and names that begin with `eh`. Any other extension is one
of the event's `attributes`, in both directions.

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
from eventhub.event.checked_json import check_json
from eventhub.event.envelope import Event
from eventhub.event.extensions import from_extensions, to_extensions
from eventhub.event.identity import EventId
from eventhub.event.inbound import EventIn, refuse_json
from eventhub.event.json_codec import time_text

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_JSON = "application/json"
_BYTES = "application/octet-stream"  # of data without a content type
_VERSION = "1.0"
_CORE = ("id", "source", "type", "subject", "time")
_DATA = ("specversion", "datacontenttype", "data", "data_base64")

# The fields that a CloudEvent carries. The others are dropped: the receiving hub sets `source`, the
# client that emitted the event; an id object becomes a text.
CARRIES = frozenset(
    {"id", "node", "type", "key", "time_us", "body", "content_type"} | extensions.CARRIES
)


class Message(NamedTuple):
    """An event as an HTTP message."""

    headers: list[tuple[str, str]]  # with Content-Type
    body: bytes


# --- reading ---


def read_structured(body: bytes) -> EventIn:
    """Return the event of a request in structured mode. Raises subclasses of BadRequest with
    `field`.
    """
    return _event(_object(_json(body)))


def read_batch(body: bytes) -> list[EventIn]:
    """Return the events of a batch. Raises subclasses of BadRequest with `index` and `field`."""
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
    """Return the event of a request in binary mode. `headers`: those that begin with `ce-`, by
    lower-case name without that prefix. Raises subclasses of BadRequest with `field`.
    """
    found: dict[str, Any] = {name: _header_value(name, text) for name, text in headers.items()}
    for name in ("data", "data_base64", "datacontenttype"):
        if name in found:
            raise errors.InvalidField("Binary mode has no such attribute.", field=f"ce-{name}")
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
    """Decode the value of a header: it may be quoted, and percent-encoded as UTF-8."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise errors.InvalidUtf8(field=f"ce-{name}") from None


_EXTENSION_NAME = re.compile(r"[a-z0-9]+")


def _event(found: dict[str, Any], data: bytes | None = None) -> EventIn:
    """Convert CloudEvents attributes to an event. `data`: the body of a binary message."""
    _check_core(found)
    fields = {"node": found["source"], **from_extensions(_others(found))}
    fields |= {"id": found["id"], "type": found["type"]}
    fields |= {to: found[name] for name, to in _OPTIONAL.items() if found.get(name) is not None}
    content_type = found.get("datacontenttype") or ""
    if not isinstance(content_type, str):
        raise errors.InvalidField("Expected a media type.", field="datacontenttype")
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
        raise errors.InvalidField("This hub supports CloudEvents 1.0.", field="specversion")
    for name in _CORE:
        value = found.get(name)
        if value is None and name in ("id", "source", "type"):
            raise errors.MissingField(field=name)
        if value is not None and (not isinstance(value, str) or not value):
            raise errors.InvalidField("Expected a non-empty text.", field=name)


def _others(found: dict[str, Any]) -> dict[str, Any]:
    others = {}
    for name, value in found.items():
        if name in _CORE or name in _DATA or value is None:
            continue
        if not _EXTENSION_NAME.fullmatch(name):
            raise errors.UnknownField("A name has only a-z and 0-9.", field=name[:100])
        if not isinstance(value, str | bool | int):
            raise errors.InvalidField("Expected a text, an integer or a boolean.", field=name)
        others[name] = value
    return others


_OPTIONAL = {"subject": "key", "time": "time"}


def _named(field: str | None) -> str | None:
    """Return the CloudEvents name of a field, as the caller wrote it."""
    if field is None:
        return None
    own = {"node": "source", "key": "subject"}
    return own.get(field) or extensions.name_of(field)


def _add_data(fields: dict[str, Any], found: dict[str, Any], content_type: str) -> None:
    """Add the data of a structured event: any JSON, a text of another type, or base64."""
    coded = found.get("data_base64")
    if coded is not None:
        if not isinstance(coded, str):
            raise errors.InvalidField("Expected base64.", field="data_base64")
        if found.get("data") is not None:
            raise errors.InvalidField("Give `data` or `data_base64`, not both.", field="data")
        fields["body_base64"] = coded
        fields["content_type"] = content_type or _BYTES
    elif "data" not in found:
        if content_type:
            raise errors.MissingField("A `datacontenttype` needs data.", field="data")
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


# --- writing ---


def structured(event: Event, cursor: str) -> bytes:
    """Return the event as JSON. Its cursor, as a text, is the id of an event without one."""
    found: dict[str, Any] = {"specversion": _VERSION, **_attributes(event, cursor)}
    if event.body is not None:
        found["datacontenttype"] = event.content_type
        if event.content_type == _JSON:
            found["data"] = orjson.Fragment(event.body)
        else:
            found["data_base64"] = extensions.base64_text(event.body)
    return orjson.dumps(found)


def batch(events: Iterable[tuple[Event, str]]) -> bytes:
    """Return events, each with its cursor, as one JSON array."""
    return b"[" + b",".join(structured(event, cursor) for event, cursor in events) + b"]"


def binary(event: Event, cursor: str) -> Message:
    """Return the event with its attributes as headers and its body unchanged; in structured mode
    if the headers would exceed what servers accept.
    """
    attributes = _attributes(event, cursor, typed=False)
    headers = [("ce-specversion", _VERSION)]
    headers += [(f"ce-{name}", _percent(_text(value))) for name, value in attributes.items()]
    size = sum(len(name) + len(text) for name, text in headers)
    if size > limits.CE_HEADERS_BYTES_MAX or not _MEDIA_TYPE.fullmatch(event.content_type):
        return Message([("Content-Type", STRUCTURED)], structured(event, cursor))
    if event.body is not None:
        headers.append(("Content-Type", event.content_type))
    return Message(headers, event.body or b"")


def _attributes(event: Event, cursor: str, *, typed: bool = True) -> dict[str, Any]:
    source = quote(event.node, safe=_URI) or "/"
    found: dict[str, Any] = {
        "id": id_text(event.id) or cursor,
        "source": source,
        "type": event.type,
    }
    if event.key:
        found["subject"] = event.key
    if event.time_us:
        found["time"] = time_text(event.time_us)
    if source != event.node:
        found["ehnode"] = event.node
    return {**found, **to_extensions(event, typed=typed)}


_MEDIA_TYPE = re.compile(r"[ -~]*")
_URI = "-._~:/?#[]@!$&'()*+,;=%"  # the characters of a URI reference besides letters and digits


def id_text(id: EventId | str | None) -> str:
    """Return the id of an event as a text; empty if it has none."""
    if isinstance(id, EventId):
        return f"{id.timestamp_us}-{id.incarnation}-{id.sequence}"
    return id or ""


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
