"""Start positions of readers as text, as in URLs, headers and messages. Plain module."""

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

from eventhub.base import limits
from eventhub.base.errors import InvalidCursor
from eventhub.eventlog.read import AtTime, Start
from eventhub.eventlog.stored import Cursor

_CURSOR = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}):([0-9]{1,19})")
_WORDS: tuple[Literal["now", "oldest", "boot"], ...] = ("now", "oldest", "boot")
_SEQUENCE_MAX = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_start(text: str) -> Start:
    """Parse a start: `now`, `oldest`, `boot`, `<segment>:<sequence>`, or a time with its offset
    (RFC 3339). Raises InvalidCursor.
    """
    for word in _WORDS:
        if text == word:
            return word
    return parse_cursor(text) or parse_time(text)


def parse_cursor(text: str) -> Cursor | None:
    """Parse `<segment>:<sequence>`; None if it is anything else."""
    found = _CURSOR.fullmatch(text)
    if found is None or int(found[2]) > _SEQUENCE_MAX:
        return None
    return Cursor(found[1].lower(), int(found[2]))


def parse_time(text: str) -> AtTime:
    """Parse a time with its offset. Raises InvalidCursor."""
    try:
        moment = datetime.fromisoformat(text[: limits.TIME_CHARS_MAX])
    except ValueError:
        raise InvalidCursor(field="from") from None
    if moment.tzinfo is None or len(text) > limits.TIME_CHARS_MAX:
        raise InvalidCursor("A time needs its offset, such as Z or +01:00.", field="from")
    return AtTime((moment - _EPOCH) // timedelta(microseconds=1))


def cursor_text(cursor: Cursor) -> str:
    """Format a cursor for URLs, headers and the ids of server-sent events."""
    return f"{cursor.segment}:{cursor.sequence}"
