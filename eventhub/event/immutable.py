"""The check that an event which forwards another one keeps its immutable properties. Plain module.

Source: FOX 2.1 (FOX-05).
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from eventhub.event.errors import ImmutableProperty

MISSING = object()


def require_unchanged(
    before: Mapping[str, Any], after: Mapping[str, Any], paths: Collection[str]
) -> None:
    """Raise ImmutableProperty for the first dotted path whose value differs between the attributes
    of an event and those of its copy, in any place where a filter reads it.
    """
    dotted = sorted(name for name in {**before, **after} if "." in name)
    for path in paths:
        if not _equal(_values(before, path, dotted), _values(after, path, dotted)):
            raise ImmutableProperty(field=f"attributes.{path}")


def _values(attributes: Mapping[str, Any], path: str, dotted: Sequence[str]) -> list[Any]:
    """Return the values that filters read at a path: along its steps, and first of attributes whose
    own names have the dots of the path or of its beginning. `dotted`: such names, sorted.
    """
    steps = path.split(".")
    found = [_inside(attributes, steps)]
    if dotted:
        heads = [(".".join(steps[:at]), steps[at:]) for at in range(2, len(steps) + 1)]
        found += [_inside(attributes.get(name, MISSING), rest) for name, rest in heads]
        prefix = f"{path}."
        below = dotted[bisect_left(dotted, prefix) :]
        found += [
            attributes.get(name, MISSING)
            for name in takewhile(lambda name: name.startswith(prefix), below)
        ]
    return found


def _inside(value: Any, steps: Sequence[str]) -> Any:
    """Return the value at a path, also in the objects of lists, or MISSING."""
    for step in steps:
        if isinstance(value, list):
            inner = [one[step] for one in value if isinstance(one, Mapping) and step in one]
            lists = [one if isinstance(one, list) else [one] for one in inner]
            value = [each for one in lists for each in one] if inner else MISSING
        elif isinstance(value, Mapping):
            value = value.get(step, MISSING)
        else:
            return MISSING
    return value


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
