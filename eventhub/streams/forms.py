"""One event in the form that a caller accepts: the hub's own JSON, or that of a codec."""

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypedDict

from msgspec import Meta

from eventhub.access import selectors as access
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.envelope import Event
from eventhub.event.fox_xml import Told
from eventhub.event.json_codec import EventJson, time_text
from eventhub.event.json_types import Time
from eventhub.event.signature import signature
from eventhub.eventlog.stored import CursorJson
from eventhub.types import selectors as types
from eventhub.types.errors import UnknownType


class Placed(NamedTuple):
    """An event, and where it is."""

    event: Event
    zone_id: int
    stream: str
    place: str  # its cursor as a text


class ControlJson(TypedDict):
    """Each control of an event, with what it is where it was not given."""

    channels: list[str]
    destinations: tuple[str, ...]
    audience: tuple[str, ...]
    expires_at: Time | None
    priority: int
    security_level: str


class ShownJson(TypedDict):
    """What an event's own fields do not say by themselves."""

    signature: Annotated[str, Meta(description="Of the names of the attributes.")]
    channels: Annotated[list[str], Meta(description="The names of those bits that have one.")]
    control: ControlJson


class StoredEventJson(EventJson, CursorJson, ShownJson):
    """An event with what the log gave it."""

    stream: str
    appended_at: Time


def shown(placed: Placed) -> ShownJson:
    """What the event's own fields do not say by themselves: the names of its channels, the
    signature of its tags (FOX-06), and each control, with its default where it was not given
    (FOX-10).
    """
    event = placed.event
    names = _channels(placed.zone_id, event.mask)
    return {
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


def _xml(placed: Placed) -> bytes:
    told = Told(placed.stream, "recovery", _latest_version(placed))
    return fox_xml.write(placed.event, told).encode()


def _latest_version(placed: Placed) -> str:
    """Of the event's type, if it is newer than the event's; else empty."""
    event = placed.event
    if not event.version:
        return ""
    try:
        found = types.find_type(
            zone_id=placed.zone_id, domain=event.domain, type=event.type, version=None
        )
    except UnknownType:
        return ""
    latest = str(found.latest)
    return latest if event.version.isdigit() and int(event.version) < found.latest else ""


FORMS: dict[str, Callable[[Placed], bytes]] = {
    cloudevents.STRUCTURED: lambda placed: cloudevents.structured(placed.event, placed.place),
    oif.CONTENT_TYPE: lambda placed: oif.write(placed.event).encode(),
    **dict.fromkeys(fox_xml.CONTENT_TYPES, _xml),
}


def accepted(accept: str) -> str | None:
    """The form that an Accept header names first; None for the hub's own JSON, which everybody gets
    who asks for something else first.
    """
    name = accept.partition(",")[0].partition(";")[0].strip().lower()
    return name if name in FORMS else None
