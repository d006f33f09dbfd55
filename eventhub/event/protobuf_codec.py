"""The event as protobuf: the stored bytes, sent as they are to binary readers (EMC-30, EMC-31).
Plain module.

Encoding and decoding touch only the fields that are set: most events use a third of the envelope.
Where it was built, the compiled decoder (decoder.cpp) decodes what it knows.
"""

from typing import Any

import orjson

from eventhub.event import event_pb2
from eventhub.event.compiled import decoder
from eventhub.event.envelope import Event
from eventhub.event.identity import EventId

_message = event_pb2.Event
_id_message = event_pb2.EventId

# fields that differ between the two sides, or are never absent
_OWN = ("domain", "type", "attributes", "id", "body", "environment", "mask", "security_level")
_LISTS = ("application", "depends", "destinations", "audience")
_LEVELS = ("med", "low", "high")  # by number, as in event.proto
# None: it was not built, or for other fields
_decode = decoder.decode if decoder is not None and Event._fields == decoder.FIELDS else None
_SAME_AT = tuple((at, name) for at, name in enumerate(Event._fields) if name not in _OWN)


def encode(event: Event) -> bytes:
    """Return the stored bytes of an event. Raises TypeError (orjson.JSONEncodeError) for attributes
    that JSON with 64-bit integers cannot represent.
    """
    fields: dict[str, Any] = {
        "domain": event.domain,
        "type": event.type,
        "attributes": orjson.dumps(event.attributes),
        "mask": event.mask,
    }
    for at, name in _SAME_AT:
        if event[at]:
            fields[name] = event[at]
    if event.body is not None:
        fields["body"] = event.body
    if event.environment:
        fields["environment"] = orjson.dumps(event.environment)
    if event.security_level != "med":
        fields["security_level"] = event.security_level.upper()
    if isinstance(event.id, EventId):
        fields["producer_id"] = id_message(*event.id)
    elif event.id:
        fields["text_id"] = event.id
    return encode_fields(fields)


def encode_fields(fields: dict[str, Any]) -> bytes:
    """Return the stored bytes of the message's own fields. Callers that have them avoid building an
    `Event`, which costs more than the encoding.
    """
    return _message(**fields).SerializeToString()


def id_message(client: str, timestamp_us: int, sequence: int, incarnation: int) -> Any:
    """Return a producer's id as a message."""
    return _id_message(
        client=client, timestamp_us=timestamp_us, sequence=sequence, incarnation=incarnation
    )


def decode(payload: bytes) -> Event:
    """Return the event of stored bytes."""
    found = None if _decode is None else _decode(payload, Event, EventId, orjson.loads)
    return decode_message(payload) if found is None else found


def decode_message(payload: bytes) -> Event:
    """Return `decode` without the compiled decoder."""
    fields: dict[str, Any] = {"domain": "", "type": "", "mask": 0}
    for field, value in _message.FromString(payload).ListFields():
        fields[field.name] = value
    fields["attributes"] = orjson.loads(fields.get("attributes", b"{}"))
    if "content_type" in fields:
        fields.setdefault("body", b"")
    for name in _LISTS:
        if name in fields:
            fields[name] = tuple(fields[name])
    if "environment" in fields:
        fields["environment"] = orjson.loads(fields["environment"])
    if "security_level" in fields:
        fields["security_level"] = _LEVELS[fields["security_level"]]
    if "text_id" in fields:
        fields["id"] = fields.pop("text_id")
    elif "producer_id" in fields:
        own = fields.pop("producer_id")
        fields["id"] = EventId(own.client, own.timestamp_us, own.sequence, own.incarnation)
    return Event(**fields)
