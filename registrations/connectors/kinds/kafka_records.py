"""A record of Kafka as a row: what maps read of it, and the body of its event. Plain module."""

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from eventhub.base import limits
from eventhub.event.inbound import JSON
from registrations.connectors.rows import InputRow
from registrations.sources.providers.provider import usual_map

if TYPE_CHECKING:
    from confluent_kafka import Message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Value(NamedTuple):
    """The value of a record: in the document, which orjson writes; its media type."""

    shown: Any
    media_type: str


def row_of(message: "Message", content_type: str, position: str) -> InputRow:
    """Return the row of a record; `content_type`: of its body, empty: by what the value is."""
    name = f"{message.topic()}-{message.partition()}-{message.offset()}"
    body = message.value()
    if body is not None and len(body) > limits.CONNECTOR_ROW_BYTES_MAX:
        return InputRow(name, None, None, "", position)
    value = _value(body)
    kind, at_ms = message.timestamp()
    document = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": _time(at_ms) if kind else None,
        "type": "tombstone" if body is None else "record",
        "key": _text(message.key()),
        "headers": {given: _text(own) for given, own in message.headers() or ()},
        "value": value.shown,
    }
    encoded: bytes | None = orjson.dumps(document)
    if encoded is not None and len(encoded) > limits.CONNECTOR_ROW_BYTES_MAX:
        encoded = None
    return InputRow(name, encoded, body, content_type or value.media_type, position)


def _value(body: bytes | None) -> _Value:
    """Return JSON as it is, other text as text, and null for other bytes."""
    if body is None:
        return _Value(None, "")
    try:
        orjson.loads(body)
        return _Value(orjson.Fragment(body), JSON)
    except orjson.JSONDecodeError:
        pass
    try:
        return _Value(body.decode(), "text/plain")
    except UnicodeDecodeError:
        return _Value(None, "application/octet-stream")


def _text(value: bytes | str | None) -> str | None:
    """Return a key, or the value of a header: bytes that are not UTF-8 in base64."""
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _time(at_ms: int) -> str | None:
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return None


USUAL = usual_map(
    domain={"body": "/topic"},
    type={"body": "/type"},
    key={"body": "/key"},
    id={
        "join": [{"body": "/topic"}, {"body": "/partition"}, {"body": "/offset"}],
        "separator": "-",
    },
    time={"body": "/timestamp"},
    attributes={name: {"body": f"/{name}"} for name in ("topic", "partition", "offset")},
)
