"""The check that an event which forwards another one keeps its immutable properties. Plain module.

Source: FOX 2.1 (FOX-05).
"""

from collections.abc import Collection, Mapping
from typing import Any

from eventhub.event.errors import ImmutableProperty

MISSING = object()


def require_unchanged(
    before: Mapping[str, Any], after: Mapping[str, Any], paths: Collection[str]
) -> None:
    """Raise ImmutableProperty for the first dotted path whose value differs between the attributes
    of an event and those of its copy.
    """
    for path in paths:
        if not _equal(value_at(before, path), value_at(after, path)):
            raise ImmutableProperty(field=f"attributes.{path}")


def value_at(attributes: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or MISSING."""
    found: Any = attributes
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return MISSING
        found = found[step]
    return found


def _equal(one: Any, other: Any) -> bool:
    """Compare two JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
