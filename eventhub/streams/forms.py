"""One event in the form that a caller accepts: the hub's own JSON, or that of a codec.
Django module.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypedDict

import orjson
from msgspec import Meta

from eventhub.access import selectors as access
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.fox_xml import FoxContext
from eventhub.event.json_codec import EventJson, time_text
from eventhub.event.json_types import Time
from eventhub.event.signature import signature
from eventhub.eventlog.stored import CursorJson, StoredEvent
from eventhub.types import selectors as types


class Placed(NamedTuple):
    """A stored event, and where it is looked at."""

    stored: StoredEvent
    zone_id: int
    stream: str


class ControlJson(TypedDict):
    """Each control of an event, with what it is where it was not given."""

    channels: list[str]
    destinations: tuple[str, ...]
    audience: tuple[str, ...]
    expires_at: Time | None
    priority: int
    security_level: str


class StoredEventJson(EventJson, CursorJson):
    """An event with what the log gave it, and what its own fields do not say by themselves."""

    stream: str
    appended_at: Time
    signature: Annotated[str, Meta(description="Of the names of the attributes.")]
    channels: Annotated[list[str], Meta(description="The names of those bits that have one.")]
    control: ControlJson


def whole(placed: Placed) -> StoredEventJson:
    """The hub's own JSON: the event with its place, the names of its channels, the signature of its
    tags (FOX-06), and each control, with its default where it was not given (FOX-10).
    """
    stored = placed.stored
    event = stored.event
    names = _channels(placed.zone_id, event.mask)
    given: EventJson = orjson.loads(stored.json)
    return {
        "stream": placed.stream,
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
        },
    }


def _channels(zone_id: int, mask: int) -> list[str]:
    """The names of the bits; bits without a name are in the mask alone."""
    return [one.name for one in access.list_channels(zone_id=zone_id) if mask >> one.bit & 1]


def _cloudevent(placed: Placed) -> bytes:
    stored = placed.stored
    return cloudevents.structured(stored.event, f"{stored.segment}:{stored.sequence}")


def _xml(placed: Placed) -> bytes:
    event = placed.stored.event
    known = types.lineage_of(zone_id=placed.zone_id, domain=event.domain, type=event.type)
    told = FoxContext(placed.stream, "recovery", known.newest_for(event))
    return fox_xml.write(event, told).encode()


FORMS: dict[str, Callable[[Placed], bytes]] = {
    cloudevents.STRUCTURED: _cloudevent,
    oif.CONTENT_TYPE: lambda placed: oif.write(placed.stored.event).encode(),
    **dict.fromkeys(fox_xml.CONTENT_TYPES, _xml),
}


def accepted(accept: str) -> str | None:
    """The form that an Accept header names first; None for the hub's own JSON, which everybody gets
    who asks for something else first.
    """
    name = accept.partition(",")[0].partition(";")[0].strip().lower()
    return name if name in FORMS else None
