"""The attributes of a CloudEvent as fields of the hub's event (docs/codecs.md, "CloudEvents").
Plain module.
"""

from typing import Any

from eventhub.event.envelope import Event
from eventhub.event.extensions import extension, is_field
from registrations.filters.ast import Path, Scalar
from registrations.filters.event_values import EventValues, keys_of
from registrations.filters.values import MISSING

_ENVELOPE = {
    **{"id": "id", "source": "node", "type": "type", "subject": "key", "time": "time"},
    **{"domain": "domain", "correlationid": "correlation", "causationid": "cause"},
    **{"expirytime": "expires_at", "ehname": "name", "ehversion": "version"},
    **{"ehsummary": "summary", "ehbundle": "bundle", "ehpriority": "priority"},
}
# attributes that a CloudEvent always has, and their values if the field is missing
REQUIRED: dict[str, Scalar] = {"id": "", "source": "/", "type": "", "domain": "", "ehpriority": 0}
SPEC_VERSION = "1.0"
_CONTEXT = frozenset((*_ENVELOPE, "specversion", "datacontenttype"))


def name_of(written: str) -> str:
    """Return the name of an attribute. Case matters only in names of the event's own attributes."""
    lower = written.lower()
    return lower if lower in _CONTEXT or is_field(lower) else written


def path_of_attribute(name: str) -> Path | None:
    """Return the path of an attribute; None if it is made from other fields of the event."""
    field = _ENVELOPE.get(name)
    if field is not None:
        return Path(field, "envelope")
    return None if name in _CONTEXT or is_field(name) else Path(name)


def attribute(name: str, values: EventValues) -> Any:
    """Return the value of an attribute, or MISSING: null, objects and empty lists are no values."""
    path = path_of_attribute(name)
    if path is None:
        return _made(name, values.event)
    found = values.of(path)
    if not found or None in (found if len(found) == 1 else keys_of(found)):
        return REQUIRED.get(name, MISSING)
    return values.value(path)


def _made(name: str, event: Event) -> Any:
    if name == "specversion":
        return SPEC_VERSION
    if name == "datacontenttype":
        return MISSING if event.body is None else event.content_type
    found = extension(event, name)
    return MISSING if found is None else found
