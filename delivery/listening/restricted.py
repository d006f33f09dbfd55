"""Tests stored bytes, without decoding them, for fields that may restrict an event's audience.
Plain module.

The compiled transcoder reads the tags. Without it the test searches for the tags as bytes. A hit
may be chance, so the event is then decoded; a miss is certain. Only a text with the control
character U+0001, a length of exactly 128, 194 or 250 bytes and a binary body can look like a tag,
so chance hits are rare.
"""

from eventhub.event import event_pb2
from eventhub.event.compiled import transcoder
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
    """Return `may_be_restricted` of an event, evaluated once for all readers."""
    restricted = stored.restricted
    if restricted is None:
        restricted = stored.restricted = may_be_restricted(stored.payload)
    return restricted


def may_be_restricted(payload: bytes) -> bool:
    """Return False if an event certainly has no `expires_at`, `destinations` or `audience`."""
    return search(payload) if transcoder is None else transcoder.may_be_restricted(payload)


def search(payload: bytes) -> bool:
    """Return `may_be_restricted` without the transcoder."""
    return (
        _holds(payload, _EXPIRES_AT) or _holds(payload, _DESTINATIONS) or _holds(payload, _AUDIENCE)
    )


def _holds(payload: bytes, tag: bytes) -> bool:
    """Search for the tag's first byte before the tag: one byte is found twenty times as fast as
    two, and it is rare or near the end.
    """
    at = payload.find(tag[0])
    return at >= 0 and payload.find(tag, at) >= 0
