"""OIF's string format of an event: `name: value` properties separated by `;`, one event per line.
Plain module.

`userid: Fred; time: 12:40:18; type: error` has three properties, all texts. A property is split at
its first `:`, so a value may contain `:`. It cannot contain `;` or the end of a line, which the
format cannot represent: such an event is refused, never changed.

Source: OIF, "Events" (OIF-13).
"""

from typing import Any

import msgspec

from eventhub.base import errors, limits
from eventhub.event.envelope import Event
from eventhub.event.errors import NotRepresentable
from eventhub.event.inbound import EventIn

CONTENT_TYPE = "text/x-oif"
DOMAIN = "oif"  # of an event received in this format
TYPE = "event"  # of an event without the property `type`

# Attributes that are texts. Numbers and booleans become texts; other fields are dropped.
CARRIES = frozenset({"attributes"})


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
            events.append(_event(properties(line)))
        except errors.EventHubError as error:
            error.index = len(events)
            raise
    return events


def properties(line: str) -> dict[str, str]:
    """Return the properties of one event. The `field` of an error is the property's index, from
    0.
    """
    found: dict[str, str] = {}
    parts = line.strip().removesuffix(";").split(";")
    for index, part in enumerate(parts):
        name, colon, value = part.partition(":")
        name = name.strip()
        if not colon or not name:
            raise errors.InvalidField("A property is `name: value`.", field=f"property {index}")
        if name in found:
            raise errors.InvalidField(f"`{name[:100]}` occurs twice.", field=f"property {index}")
        found[name] = value.strip()
    return found


def _event(attributes: dict[str, str]) -> EventIn:
    kind = attributes.get("type") or TYPE
    if len(kind) > limits.TEXT_CHARS_MAX:
        raise errors.FieldTooLong(field="type", chars_max=limits.TEXT_CHARS_MAX)
    return EventIn(domain=DOMAIN, type=kind, attributes=dict(attributes))


def write(event: Event) -> str:
    """Return the attributes of an event in this format. Raises NotRepresentable with the
    attribute as `field`.
    """
    return "; ".join(
        f"{_name(name)}: {_value(name, value)}" for name, value in event.attributes.items()
    )


def _name(name: str) -> str:
    if not name or name != name.strip() or any(sign in name for sign in ":;\r\n"):
        raise NotRepresentable(
            "An OIF string cannot have a name with `:`, `;` or space around it.", field=name[:100]
        )
    return name


def _value(name: str, value: Any) -> str:
    if not isinstance(value, str):
        if isinstance(value, dict | list) or value is None:
            raise NotRepresentable("An OIF string has only simple values.", field=name)
        return msgspec.json.encode(value).decode()
    if value != value.strip() or any(sign in value for sign in ";\r\n"):
        raise NotRepresentable(
            "An OIF string cannot have a value with `;`, several lines or space around it.",
            field=name,
        )
    return value
