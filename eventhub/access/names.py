"""Names of zones, clients, channels, streams and sessions: their form. Plain module."""

import re

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidName

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ID = re.compile(r"[0-9]{1,18}")


def valid_name(text: str, *, field: str) -> str:
    """Return the name. Raises FieldTooLong or InvalidName at `field`."""
    if len(text) > limits.NAME_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.NAME_CHARS_MAX)
    if not NAME.fullmatch(text):
        raise InvalidName(field=field)
    return text


def id_in_path(text: str) -> int | None:
    """Return the id that a path names an item by; None if it is a name: those of sessions and
    session groups are never digits alone.
    """
    return int(text) if _ID.fullmatch(text) else None
