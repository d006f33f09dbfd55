"""Representations of one event by media type: the hub's own JSON, or the format of a codec.
Django module.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypedDict

import orjson
from msgspec import Meta

from eventhub.access import selectors as access
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.fox_xml import FoxContext
from eventhub.event.identity import signature
from eventhub.event.json_codec import EventJson, time_text
from eventhub.event.json_types import Time
from eventhub.eventlog.stored import CursorJson, StoredEvent
from eventhub.types import selectors as types


class StreamEvent(NamedTuple):
    """A stored event with its zone and stream."""

    stored: StoredEvent
    zone_id: int
    stream: str


class ControlJson(TypedDict):
    """The controls of an event, with the defaults of those that it does not set."""

    channels: list[str]
    destinations: tuple[str, ...]
    audience: tuple[str, ...]
    expires_at: Time | None
    priority: int
    security_level: str
    order: str


class StoredEventJson(EventJson, CursorJson):
    """An event with the fields of the log, and those derived from its own."""

    stream: str
    appended_at: Time
    signature: Annotated[str, Meta(description="The signature of the attribute names.")]
    channels: Annotated[
        list[str], Meta(description="The names of the bits in `mask` that have one.")
    ]
    control: ControlJson


def stored_event_json(located: StreamEvent) -> StoredEventJson:
    """Return the hub's own JSON: the event with its position, channel names, the signature of its
    tags (FOX-06), and every control, with its default if the event does not set it (FOX-10).
    """
    stored = located.stored
    event = stored.event
    names = _channels(located.zone_id, event.mask)
    given: EventJson = orjson.loads(stored.json)
    return {
        "stream": located.stream,
        **stored.cursor.json(),
        "appended_at": time_text(stored.appended_at_us),
        **given,
        "signature": signature(event.attributes),
        "channels": names,
        "control": {
            "channels": names,
            "destinations": event.destinations,
            "audience": event.audience,
            "expires_at": time_text(event.expires_at_us) if event.expires_at_us else None,
            "priority": event.priority,
            "security_level": event.security_level,
            "order": event.order or "session",
        },
    }


def _channels(zone_id: int, mask: int) -> list[str]:
    """Return the names of the bits; bits without a name appear only in the mask."""
    return [one.name for one in access.channels_ever(zone_id=zone_id) if mask >> one.bit & 1]


def _cloudevent(located: StreamEvent) -> bytes:
    stored = located.stored
    return cloudevents.structured(stored.event, f"{stored.segment}:{stored.sequence}")


def _xml(located: StreamEvent) -> bytes:
    event = located.stored.event
    declared = types.lineage_of(zone_id=located.zone_id, domain=event.domain, type=event.type)
    context = FoxContext(located.stream, "recovery", declared.newest_for(event))
    return fox_xml.write(event, context).encode()


FORMATS: dict[str, Callable[[StreamEvent], bytes]] = {
    cloudevents.STRUCTURED: _cloudevent,
    oif.CONTENT_TYPE: lambda located: oif.write(located.stored.event).encode(),
    **dict.fromkeys(fox_xml.CONTENT_TYPES, _xml),
}


def accepted_format(accept: str) -> str | None:
    """Return the media type that an Accept header names first; None for the hub's own JSON, the
    default for every other type.
    """
    name = accept.partition(",")[0].partition(";")[0].strip().lower()
    return name if name in FORMATS else None
