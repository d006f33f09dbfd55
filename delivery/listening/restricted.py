"""What can be told of stored bytes without decoding them: whether something in them may restrict
who is told. Plain module.

A tag of protobuf is searched for as bytes. Finding it may be chance, so whoever finds it decodes;
not finding it is certain. Only a text with the control character U+0001, a length of exactly 128,
194 or 250 bytes and a binary body can look like one, so chance is rare.
"""

from eventhub.event import event_pb2
from eventhub.eventlog.stored import StoredEvent

_VARINT, _LENGTH_DELIMITED = 0, 2
_fields = event_pb2.Event.DESCRIPTOR.fields_by_name


def _tag(name: str, wire_type: int) -> bytes:
    tag = _fields[name].number << 3 | wire_type
    return bytes((tag & 0x7F | 0x80, tag >> 7))


_EXPIRES_AT = _tag("expires_at_us", _VARINT)
_DESTINATIONS = _tag("destinations", _LENGTH_DELIMITED)
_AUDIENCE = _tag("audience", _LENGTH_DELIMITED)


def is_restricted(stored: StoredEvent) -> bool:
    """`may_be_restricted` of an event, looked at once for all its readers."""
    found = stored.restricted
    if found is None:
        found = stored.restricted = may_be_restricted(stored.payload)
    return found


def may_be_restricted(payload: bytes) -> bool:
    """False if an event surely has no end (`expires_at`), no `destinations` and no `audience`."""
    return (
        _holds(payload, _EXPIRES_AT) or _holds(payload, _DESTINATIONS) or _holds(payload, _AUDIENCE)
    )


def _holds(payload: bytes, tag: bytes) -> bool:
    """One byte is found twenty times as fast as two, and is rare or near the end."""
    at = payload.find(tag[0])
    return at >= 0 and payload.find(tag, at) >= 0
