"""Grants: the actions that a key may perform, each on which streams. No grant, no access.
Plain module.

A pattern is a stream's name in which `*` stands for any number of characters, also none. All other
characters are literal and case-sensitive. Matching never backtracks, so no pattern is slow.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidField, MissingField, UnknownField

ACTIONS = ("emit", "listen", "manage")
SYSTEM = "system"  # the stream of the hub's own changes
EXAMPLES = "eventhub.examples"  # a zone's stream of examples that were sent to endpoints
APPLICATIONS = "eventhub.applications"  # of the states of a zone's applications
PRESENCE = "eventhub.presence"  # of the clients of a zone that are connected
TRACES = "eventhub.traces"  # of the API calls of a zone
# only the hub creates, changes and writes these
HUB_STREAMS = (SYSTEM, EXAMPLES, APPLICATIONS, PRESENCE, TRACES)
_OF_ALL_CLIENTS = (SYSTEM, PRESENCE, TRACES)  # what they say of a client is not for the others
_PATTERN = re.compile(r"[A-Za-z0-9._*-]+")
_ANY = "\0"  # replaces the star of a pattern that is matched itself; no name contains it


class Grant(NamedTuple):
    """One action on all streams whose name matches the pattern."""

    action: str
    pattern: str

    def json(self) -> dict[str, str]:
        return {"action": self.action, "streams": self.pattern}


def to_listen(stream: str) -> str:
    """Return the action that reading a stream needs: `manage` for the hub's streams about all
    clients, else `listen`.
    """
    return "manage" if stream in _OF_ALL_CLIENTS else "listen"


def parse_grants(items: Any, *, field: str = "grants") -> tuple[Grant, ...]:
    """Parse grants from their JSON, `[{"action": "emit", "streams": "orders.*"}]`.

    Errors name index and field.
    """
    if not isinstance(items, list):
        raise InvalidField("Grants are a list of objects.", field=field)
    if len(items) > limits.GRANTS_PER_KEY_MAX:
        raise FieldTooLong(
            f"A key has at most {limits.GRANTS_PER_KEY_MAX} grants; use patterns.", field=field
        )
    found = [_parse_grant(item, f"{field}.{index}") for index, item in enumerate(items)]
    return tuple(dict.fromkeys(found))


def _parse_grant(item: Any, at: str) -> Grant:
    if not isinstance(item, dict):
        raise InvalidField('A grant is {"action": ..., "streams": ...}.', field=at)
    for name in item:
        if name not in ("action", "streams"):
            raise UnknownField(field=f"{at}.{name}")
    for name in ("action", "streams"):
        if name not in item:
            raise MissingField(field=f"{at}.{name}")
    action, pattern = item["action"], item["streams"]
    if not isinstance(action, str) or action not in ACTIONS:
        raise InvalidField(f"An action is one of {', '.join(ACTIONS)}.", field=f"{at}.action")
    if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
        message = "A stream pattern is letters, digits, `.`, `_`, `-`, and `*` for anything."
        raise InvalidField(message, field=f"{at}.streams")
    if len(pattern) > limits.NAME_CHARS_MAX:
        raise FieldTooLong(field=f"{at}.streams", chars_max=limits.NAME_CHARS_MAX)
    return Grant(action, pattern)


def allows(grants: Iterable[Grant], action: str, stream: str) -> bool:
    """Return True if a grant of this action matches the stream."""
    for own_action, pattern in grants:  # noqa: SIM110 - a loop, because this runs for every request
        if own_action == action and matches(pattern, stream):
            return True
    return False


def covers(own: Iterable[Grant], requested: Grant) -> bool:
    """Return True if one own grant allows everything that the requested one would.

    Exact: the star of the requested pattern becomes a character that only a star matches.
    """
    return allows(own, requested.action, requested.pattern.replace("*", _ANY))


def matches(pattern: str, name: str) -> bool:
    """Return True if the name is the pattern with each `*` replaced by some text."""
    if pattern == "*" or pattern == name:
        return True
    head, star, rest = pattern.partition("*")
    if not star or not name.startswith(head):
        return False
    *middles, tail = rest.split("*")
    at = len(head)
    for middle in middles:
        found = name.find(middle, at)
        if found < 0:
            return False
        at = found + len(middle)
    return len(name) - at >= len(tail) and name.endswith(tail)
