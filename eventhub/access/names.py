"""Names of zones, clients, channels and streams: their form. Plain module."""

import re

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidName

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def valid_name(text: str, *, field: str) -> str:
    """Return the name. Raises FieldTooLong or InvalidName at `field`."""
    if len(text) > limits.NAME_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.NAME_CHARS_MAX)
    if not NAME.fullmatch(text):
        raise InvalidName(field=field)
    return text
