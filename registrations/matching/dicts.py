"""Events as dictionaries, as the JSON API and the Python client return them, for matching outside
the hub (RDY-53). Plain module.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from eventhub.event.envelope import Event

_TEXTS = ("source", "name", "version", "node", "key", "bundle", "correlation", "cause", "summary")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = {"time": "time_us", "expires_at": "expires_at_us"}


def event_from_dict(fields: Mapping[str, Any]) -> Event:
    """Return the event in a dictionary such as `Delivered.event`, with the fields that filters can
    test: all names are optional, and others are ignored.
    """
    found: dict[str, Any] = {name: fields[name] for name in _TEXTS if name in fields}
    found |= {to: _microseconds(fields[name]) for name, to in _TIMES.items() if name in fields}
    if isinstance(fields.get("id"), str):
        found["id"] = fields["id"]
    if isinstance(fields.get("priority"), int):
        found["priority"] = fields["priority"]
    return Event(
        str(fields.get("domain", "")),
        str(fields.get("type", "")),
        dict(fields.get("attributes") or {}),
        application=_texts(fields.get("application")),
        environment=fields.get("environment"),
        **found,
    )


def _texts(given: Any) -> tuple[str, ...]:
    """Return texts as a tuple; a single text is one item."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def _microseconds(text: str) -> int:
    """Parse an RFC 3339 time. Raises ValueError."""
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
