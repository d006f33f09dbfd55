"""The values of agents: JSON values and events, never changed once created. Plain module.

A list or an object knows its depth and its size, so that neither has to be searched, and no
recursion over a value goes deeper than AGENT_VALUE_DEPTH_MAX. A value that is part of another twice
counts twice. Sizes are bytes, estimated from above, and the same on every machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.errors import RunFault
from registrations.filters.values import same
from registrations.patterns.pattern_engine import EventPosition

_SCALAR_BYTES = 40
_TEXT_BYTES = 64
_ITEM_BYTES = 8


class ListValue:
    """A list."""

    __slots__ = ("depth", "items", "size")

    def __init__(self, items: tuple["Value", ...], depth: int, size: int) -> None:
        self.items = items
        self.depth = depth
        self.size = size


class ObjectValue:
    """An object; its names are texts."""

    __slots__ = ("depth", "fields", "size")

    def __init__(self, fields: Mapping[str, "Value"], depth: int, size: int) -> None:
        self.fields = fields
        self.depth = depth
        self.size = size


class EventValue:
    """An event and its position. `index`: among the events of the streams; `size`: estimated."""

    __slots__ = ("event", "index", "position", "size")

    def __init__(self, index: int, position: EventPosition, event: Event, size: int) -> None:
        self.index = index
        self.position = position
        self.event = event
        self.size = size


Value = None | bool | int | float | str | ListValue | ObjectValue | EventValue


def list_of(items: Sequence[Value]) -> ListValue:
    """Return a list. Raises RunFault if it is too large or too deep."""
    _check_count(len(items))
    size = _TEXT_BYTES + sum(_ITEM_BYTES + size_of(item) for item in items)
    return ListValue(tuple(items), _depth_over(items), size)


def object_of(fields: Mapping[str, Value]) -> ObjectValue:
    """Return an object. Raises RunFault if it is too large or too deep."""
    _check_count(len(fields))
    names = sum(_ITEM_BYTES + size_of(name) for name in fields)
    size = 2 * _TEXT_BYTES + names + sum(map(size_of, fields.values()))
    return ObjectValue(fields, _depth_over(fields.values()), size)


def size_of(value: Value) -> int:
    """Return the estimated size of a value. An event counts as a reference: it is shared."""
    if isinstance(value, str):
        return _TEXT_BYTES + (len(value) if value.isascii() else 4 * len(value))
    if isinstance(value, ListValue | ObjectValue):
        return value.size
    return _SCALAR_BYTES


def type_of(value: Value) -> str:
    """Return the name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return {ListValue: "list", ObjectValue: "object", EventValue: "event"}[type(value)]


def is_true(value: Value) -> bool:
    """Return whether a value counts as true: all but false and null do."""
    return value is not None and value is not False


def equal(one: Value, other: Value) -> bool:
    """Return whether two values are equal as in filters; lists and objects by their parts, events
    if they are the same one.
    """
    if isinstance(one, ListValue) and isinstance(other, ListValue):
        return len(one.items) == len(other.items) and all(map(equal, one.items, other.items))
    if isinstance(one, ObjectValue) and isinstance(other, ObjectValue):
        names = one.fields.keys()
        return names == other.fields.keys() and all(
            equal(one.fields[name], other.fields[name]) for name in names
        )
    if isinstance(one, EventValue) and isinstance(other, EventValue):
        return one.position == other.position
    return type_of(one) == type_of(other) and same(one, other)


def value_of_json(found: Any) -> Value:
    """Return the value of JSON, whose depth is bounded. Raises RunFault for a very large one."""
    if isinstance(found, dict):
        return object_of({name: value_of_json(value) for name, value in found.items()})
    if isinstance(found, list | tuple):
        return list_of([value_of_json(value) for value in found])
    if found is None or isinstance(found, bool | int | float | str):
        return found
    raise RunFault("wrong_type", "The field has no JSON value.")


def json_of(value: Value) -> Any:
    """Return a value as JSON. Raises RunFault for an event."""
    if isinstance(value, ListValue):
        return [json_of(item) for item in value.items]
    if isinstance(value, ObjectValue):
        return {name: json_of(item) for name, item in value.fields.items()}
    if isinstance(value, EventValue):
        raise RunFault("wrong_type", "An event is not a value to store or send; take its fields.")
    return value


def parts_of(value: Value) -> int:
    """Return an estimate of the parts of a value, from above."""
    return size_of(value) // _SCALAR_BYTES + 1


def events_in(values: Sequence[Value]) -> Iterator[EventValue]:
    """Yield the events among values and in lists. Raises RunFault for anything else."""
    for value in values:
        if isinstance(value, EventValue):
            yield value
        elif isinstance(value, ListValue):
            yield from events_in(value.items)
        else:
            raise RunFault("wrong_type", f"Expected events, not a {type_of(value)}.")


def _check_count(count: int) -> None:
    most = limits.AGENT_LIST_ITEMS_MAX
    if count > most:
        raise RunFault("value_too_large", f"A list or an object has at most {most:,} items.")


def _depth_over(parts: Any) -> int:
    depths = (part.depth for part in parts if isinstance(part, ListValue | ObjectValue))
    depth = 1 + max(depths, default=0)
    most = limits.AGENT_VALUE_DEPTH_MAX
    if depth > most:
        raise RunFault("value_too_large", f"Lists and objects are nested at most {most} deep.")
    return depth
