"""The JSON body of an event as filters read it: as the attribute `data`, if the stream had the
policy `filterable_data` when the event was emitted. Plain module.

The stored bytes say so (`Event.filterable_data`). So all readers of the log agree, late ones and
those of the archive included, also when the policy has changed since.
"""

from functools import lru_cache
from typing import Any

import msgspec
import orjson
from msgspec import UNSET

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidField
from eventhub.event.checked_json import check_json, check_values
from eventhub.event.envelope import Event

DATA = "data"  # the attribute
_INSIDE = f"{DATA}."


def filterable(event: Event) -> Event:
    """Return the event as filters read it: with its JSON body as the attribute `data`, unless it
    has an attribute of that name. It parses the body, so call it where a filter reads `data`.
    """
    if not event.filterable_data or event.body is None or DATA in event.attributes:
        return event
    return event._replace(attributes={**event.attributes, DATA: _data(event.body)})


def is_in_data(path: str) -> bool:
    """Return whether a path of attributes leads to the body, or into it."""
    return path == DATA or path.startswith(_INSIDE)


def require_filterable(body: bytes, content_type: str, value: Any = UNSET) -> bool:
    """Return whether filters can read a body: it is JSON. `value`: what it contains, if the caller
    has checked it by `check_json`. Raises FieldTooLong, TooDeep, NumberOutOfRange and InvalidField
    for JSON that exceeds the bounds of `data` or is not valid.
    """
    if not is_json(content_type):
        return False
    if len(body) > limits.DATA_BYTES_MAX:
        raise FieldTooLong(field="body", bytes=len(body), bytes_max=limits.DATA_BYTES_MAX)
    if value is UNSET:
        value = _parsed(body, content_type)
        check_json(value, "body", limits.EVENT_BYTES_MAX)
    check_values(value, body, "body", limits.DATA_VALUES_MAX)
    return True


def is_json(content_type: str) -> bool:
    """Return whether a media type is JSON: application/json, or one that ends in `+json`."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence == "application/json" or essence.endswith("+json")


@lru_cache(maxsize=limits.DATA_PARSED_MAX)
def _data(body: bytes) -> Any:
    """Return a parsed body, which several matchers of a process read and none changes."""
    return orjson.loads(body)


def _parsed(body: bytes, content_type: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = f"The body is not JSON, as its content type {content_type[:100]} says."
        raise InvalidField(message, field="body") from None
