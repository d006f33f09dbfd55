"""The key by which an endpoint orders its deliveries, a path in the event as in filters, and the
lanes that its values are in. Plain module.

Every process must give an event the same lane, so its number is derived from the stream and the
value alone.
"""

from hashlib import blake2b
from typing import Any

import orjson

from eventhub.event.envelope import Event
from registrations.filters.ast import Path, TextPosition
from registrations.filters.predicate import path_of
from registrations.filters.values import MISSING, key_of, value_of

_NONE = b""  # no event has this value: events without the key share a lane


def order_path(text: str) -> Path:
    """Return the path that a text names: `customer.id` is an attribute, `@key` a field of the
    envelope. Raises FilterSyntax if there is no such field.
    """
    return path_of(text, TextPosition(1, 1))


def lane_number(stream_id: int, event: Event, path: Path) -> int:
    """Return the number of the lane of an event: negative, and the same for equal values of the
    key. Two lanes with the same number are one lane, which costs time but no order.
    """
    digest = blake2b(b"%d:%b" % (stream_id, _key_bytes(value_of(path, event))), digest_size=8)
    return -1 - (int.from_bytes(digest.digest()) >> 1)


def _key_bytes(value: Any) -> bytes:
    """Return the same bytes for values that are equal in filters (1 and 1.0 are); objects and lists
    are compared as JSON.
    """
    if value is MISSING or value is None:
        return _NONE
    if isinstance(value, dict | list | tuple):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    key = key_of(value)
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    return repr(key).encode("utf-8", "surrogatepass")
