"""OIF's string format of an event: `name: value` properties separated by `;`, one event per line.
Plain module.

`userid: Fred; time: 12:40:18; type: error` has three properties, all texts. A property is split at
its first `:`, so a value may contain `:`. It cannot contain `;` or the end of a line, which the
format cannot represent: such an event is refused, never changed.

A value in braces is an event, `cause: {type: error; user: Ann}`, and one in angle brackets a
reference to a remote object, `owner: <https://host/pumps/7>`. OIF has a notation for both, which
its paper does not show.

Source: OIF, "Events" (OIF-13, OIF-15).
"""

import re
from typing import Any

import msgspec

from eventhub.base import errors, limits
from eventhub.event.envelope import Event
from eventhub.event.errors import NotRepresentable
from eventhub.event.inbound import EventIn
from eventhub.event.references import REFERENCE, is_reference

CONTENT_TYPE = "text/x-oif"
DOMAIN = "oif"  # of an event received in this format
TYPE = "event"  # of an event without the property `type`

# Attributes that are texts, events and references. Numbers and booleans become texts; other fields
# are dropped.
CARRIES = frozenset({"attributes"})

# the parts of a property, by the character that ends the event
_NAME = {"": re.compile("[^:;]*"), "}": re.compile("[^:;}]*")}
_TEXT = {"": re.compile("[^;]*"), "}": re.compile("[^;}]*")}
_TARGET = re.compile("[^>]*")
_SPACE = re.compile(r"\s*")
_EXCLUDED = ";\r\n"  # from names and texts


def read(body: bytes) -> list[EventIn]:
    """Return the events of a text, one per line. Raises subclasses of BadRequest with `index` and
    `field`.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidUtf8(byte=error.start) from None
    events: list[EventIn] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        if len(events) == limits.BATCH_EVENTS_MAX:
            raise errors.BatchTooLarge(events_max=limits.BATCH_EVENTS_MAX)
        try:
            events.append(_event(_Reader(line.strip()).properties()))
        except errors.EventHubError as error:
            error.index = len(events)
            raise
    return events


class _Reader:
    """A line and the position up to which it is parsed. The `field` of an error is the index of the
    property, from 0, and in an event inside the event its path: `property 1.0`.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def properties(self, path: str = "", depth: int = 0) -> dict[str, Any]:
        """Return the properties up to the end of the line, or of an event inside of others, in a
        number of braces (`depth`).
        """
        found: dict[str, Any] = {}
        end = "}" if depth else ""
        while not (depth and self._next() == end):
            field = f"property {path}{len(found)}"
            name = self._take(_NAME[end]).strip()
            if self._next() != ":" or not name:
                raise errors.InvalidField("A property is `name: value`.", field=field)
            if name in found:
                raise errors.InvalidField(f"`{name[:100]}` occurs twice.", field=field)
            self._at += 1
            found[name] = self._value(f"{path}{len(found)}", end, depth)
            if self._next() == ";":
                self._at += 1
                self._skip_space()
                if self._at < len(self._text):
                    continue
            if self._next() == end:
                break
            raise errors.InvalidField("Expected `;` or the end of the event.", field=field)
        self._at += len(end)
        return found

    def _value(self, path: str, end: str, depth: int) -> Any:
        self._skip_space()
        value: dict[str, Any]
        if self._next() in ("{", "<") and depth + 2 > limits.JSON_DEPTH_MAX:  # the attributes too
            message = "Events are nested too deeply in the OIF string; flatten them."
            raise errors.TooDeep(message, field=f"property {path}", depth_max=limits.JSON_DEPTH_MAX)
        if self._next() == "{":
            self._at += 1
            self._skip_space()
            value = self.properties(f"{path}.", depth + 1)
        elif self._next() == "<":
            self._at += 1
            value = {REFERENCE: self._take(_TARGET)}
            if not self._next():
                raise errors.InvalidField("A reference ends with `>`.", field=f"property {path}")
            self._at += 1
        else:
            return self._take(_TEXT[end]).strip()
        self._skip_space()
        return value

    def _next(self) -> str:
        """Return the next character; empty at the end of the line."""
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Return the text that a pattern matches, and step over it."""
        start, found = self._at, pattern.match(self._text, self._at)
        self._at = found.end() if found else start
        return self._text[start : self._at]

    def _skip_space(self) -> None:
        self._take(_SPACE)


def _event(attributes: dict[str, Any]) -> EventIn:
    kind = attributes.get("type") or TYPE
    if not isinstance(kind, str):
        kind = TYPE
    if len(kind) > limits.TEXT_CHARS_MAX:
        raise errors.FieldTooLong(field="type", chars_max=limits.TEXT_CHARS_MAX)
    return EventIn(domain=DOMAIN, type=kind, attributes=attributes)


def write(event: Event) -> str:
    """Return the attributes of an event in this format. Raises NotRepresentable with the
    attribute as `field`.
    """
    return _write(event.attributes, "", _EXCLUDED)


def _write(attributes: dict[str, Any], path: str, excluded: str) -> str:
    """Return properties; names and texts have none of the `excluded` characters."""
    return "; ".join(
        f"{_name(name, f'{path}{name}', excluded)}: {_value(value, f'{path}{name}', excluded)}"
        for name, value in attributes.items()
    )


def _name(name: str, path: str, excluded: str) -> str:
    if not name or name != name.strip() or any(sign in name for sign in f":{excluded}"):
        message = "An OIF string cannot have a name with `:`, `;` or space around it, or inside"
        raise NotRepresentable(f"{message} an event in another with `}}`.", field=path[:100])
    return name


def _value(value: Any, path: str, excluded: str) -> str:
    if isinstance(value, dict):
        if is_reference(value):
            return f"<{value[REFERENCE]}>"
        inner = _write(value, f"{path}.", f"}}{_EXCLUDED}")
        return f"{{{inner}}}"
    if not isinstance(value, str):
        if isinstance(value, list) or value is None:
            raise NotRepresentable("An OIF string has no lists and no null.", field=path)
        return msgspec.json.encode(value).decode()
    if value != value.strip() or value[:1] in ("{", "<") or any(s in value for s in excluded):
        message = "An OIF string cannot have a value with `;`, several lines or space around it,"
        message += " one that begins with `{` or `<`, or inside an event in another with `}`."
        raise NotRepresentable(message, field=path)
    return value
