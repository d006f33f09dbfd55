"""The event as a NamedTuple, complete when it is created and never changed (EMC-04). Segment,
sequence and time of append are assigned by the log and are not part of it. Plain module.
"""

from typing import Any, NamedTuple

from eventhub.event.identity import EventId

DEFAULT_MASK = 1 << 63  # the channel `default`: an event that names no channel is on it
ALL_MASK = (1 << 64) - 1
HUB_SOURCE = "eventhub"  # of the hub's own events; no client gets this name


class Event(NamedTuple):
    """One event.

    Texts are empty when not given; times are microseconds since 1970 UTC, 0 when not given.
    """

    domain: str  # SUN's class (SUN-01); READY's domain (RDY-10)
    type: str  # SUN's subclass; dotted names form a hierarchy
    attributes: dict[str, Any]  # filterable; nested allowed; values keep their JSON type
    id: EventId | str | None = None
    source: str = ""  # the client that emitted it
    name: str = ""
    version: str = ""
    body: bytes | None = None  # comes back unchanged (RDY-10)
    content_type: str = ""
    node: str = ""  # where it was generated
    application: tuple[str, ...] = ()
    environment: dict[str, str] | None = None
    mask: int = DEFAULT_MASK
    priority: int = 0
    expires_at_us: int = 0
    time_us: int = 0  # the emitter's clock: informational, never an order (EMC-41)
    key: str = ""
    bundle: str = ""
    depends: tuple[str, ...] = ()
    correlation: str = ""
    cause: str = ""
    traceparent: str = ""
    destinations: tuple[str, ...] = ()  # clients; empty: all listeners (FOX-14)
    audience: tuple[str, ...] = ()  # groups of clients; empty: everybody (OIF-32)
    security_level: str = "med"  # a label: low, med or high (FOX-19)
    summary: str = ""
    bundle_number: int = 0  # position within `bundle`, from 1
    time_constraint_ms: int = 0
    merge_scheme: str = ""
    tombstone: bool = False  # the state of `key` ends with this event
    order: str = ""  # causal or none: its own order in causal sessions (FOX-13)
    filterable_data: bool = False  # filters read the JSON body as `data` (filterable.py)


def version_number(version: str) -> int:
    """Return a declared version as a number; 0 if the text is not a number."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0
