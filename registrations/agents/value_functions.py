"""The functions of texts, lists and objects that programs call. Plain module.

Each counts its work before it does it, and the memory of its result.
"""

import json
from typing import cast

from eventhub.base import limits
from registrations.agents.errors import RunFault
from registrations.agents.machine import Function, Machine
from registrations.agents.values import (
    ListValue,
    ObjectValue,
    Value,
    equal,
    json_of,
    list_of,
    object_of,
    parts_of,
    size_of,
    type_of,
)


def text(value: Value) -> str:
    """Return an argument that must be a text. Raises RunFault."""
    if not isinstance(value, str):
        raise RunFault("wrong_type", f"Expected a text, not a {type_of(value)}.")
    return value


def listed(value: Value) -> tuple[Value, ...]:
    """Return the items of an argument that must be a list. Raises RunFault."""
    if not isinstance(value, ListValue):
        raise RunFault("wrong_type", f"Expected a list, not a {type_of(value)}.")
    return value.items


def _whole(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RunFault("wrong_type", f"Expected a whole number, not a {type_of(value)}.")
    return value


def _new_text(machine: Machine, parts: list[str], separator: str = "") -> str:
    chars = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)
    most = limits.AGENT_TEXT_CHARS_MAX
    if chars > most:
        raise RunFault("value_too_large", f"A text has at most {most:,} characters.")
    machine.read(chars)
    return cast(str, machine.created(separator.join(parts)))


def _type(machine: Machine, arguments: list[Value]) -> Value:
    return type_of(arguments[0])


def _length(machine: Machine, arguments: list[Value]) -> Value:
    value = arguments[0]
    if isinstance(value, ObjectValue):
        return len(value.fields)
    return len(value) if isinstance(value, str) else len(listed(value))


# --- texts ---


def _text(machine: Machine, arguments: list[Value]) -> Value:
    """Return a text as it is, any other value as JSON."""
    value = arguments[0]
    if isinstance(value, str):
        return value
    machine.work(parts_of(value))
    machine.allocate(6 * size_of(value))  # with escapes
    return _new_text(machine, [json.dumps(json_of(value), ensure_ascii=False)])


def _concat(machine: Machine, arguments: list[Value]) -> Value:
    return _new_text(machine, [*map(text, arguments)])


def _join(machine: Machine, arguments: list[Value]) -> Value:
    items = listed(arguments[0])
    machine.work(len(items) // 8)
    return _new_text(machine, [*map(text, items)], text(arguments[1]))


def _split(machine: Machine, arguments: list[Value]) -> Value:
    whole, separator = map(text, arguments)
    if not separator:
        raise RunFault("wrong_type", "The separator is empty.")
    machine.work(len(whole) // 4)
    machine.allocate(size_of(whole))
    parts: list[Value] = [*whole.split(separator, limits.AGENT_LIST_ITEMS_MAX)]
    return machine.created(list_of(parts))


def _part(machine: Machine, arguments: list[Value]) -> Value:
    """Return the characters from one number up to another, both from 0, the last one excluded."""
    whole, first = text(arguments[0]), max(_whole(arguments[1]), 0)
    end = _whole(arguments[2]) if len(arguments) > 2 else len(whole)
    return _new_text(machine, [whole[first : max(end, 0)]])


def _lower(machine: Machine, arguments: list[Value]) -> Value:
    machine.read(len(text(arguments[0])))
    return _new_text(machine, [text(arguments[0]).lower()])


def _upper(machine: Machine, arguments: list[Value]) -> Value:
    machine.read(len(text(arguments[0])))
    return _new_text(machine, [text(arguments[0]).upper()])


def _contains(machine: Machine, arguments: list[Value]) -> Value:
    """Return whether a text has another, a list an item, or an object a name."""
    whole, part = arguments
    if isinstance(whole, str):
        machine.read(len(whole) * (1 + min(len(text(part)), 64) // 8))
        return text(part) in whole
    if isinstance(whole, ObjectValue):
        return text(part) in whole.fields
    items = listed(whole)
    machine.work((len(items) + parts_of(whole)) // 4)
    return any(equal(item, part) for item in items)


def _has_prefix(machine: Machine, arguments: list[Value]) -> Value:
    whole, prefix = map(text, arguments)
    machine.read(len(prefix))
    return whole.startswith(prefix)


def _has_suffix(machine: Machine, arguments: list[Value]) -> Value:
    whole, suffix = map(text, arguments)
    machine.read(len(suffix))
    return whole.endswith(suffix)


# --- lists and objects ---


def _list(machine: Machine, arguments: list[Value]) -> Value:
    return machine.created(list_of(arguments))


def _range(machine: Machine, arguments: list[Value]) -> Value:
    """Return the whole numbers from 0, or from the first argument, up to the last one, excluded."""
    first, end = (0, *arguments) if len(arguments) == 1 else arguments
    numbers = range(_whole(first), _whole(end))
    if numbers.start + limits.AGENT_LIST_ITEMS_MAX < numbers.stop:
        most = limits.AGENT_LIST_ITEMS_MAX
        raise RunFault("value_too_large", f"A list or an object has at most {most:,} items.")
    machine.work(len(numbers) // 4)
    return machine.created(list_of([*numbers]))


def _first(machine: Machine, arguments: list[Value]) -> Value:
    items = listed(arguments[0])
    return items[0] if items else None


def _last(machine: Machine, arguments: list[Value]) -> Value:
    items = listed(arguments[0])
    return items[-1] if items else None


def _rest(machine: Machine, arguments: list[Value]) -> Value:
    items = listed(arguments[0])
    machine.work(len(items) // 4)
    return machine.created(list_of(items[1:]))


def _nth(machine: Machine, arguments: list[Value]) -> Value:
    items, index = listed(arguments[0]), _whole(arguments[1])
    return items[index] if 0 <= index < len(items) else None


def _append(machine: Machine, arguments: list[Value]) -> Value:
    """Return a list with further items at its end."""
    items = listed(arguments[0])
    machine.work(len(items) // 4)
    return machine.created(list_of([*items, *arguments[1:]]))


def _joined(machine: Machine, arguments: list[Value]) -> Value:
    """Return the items of several lists as one list."""
    parts = [*map(listed, arguments)]
    machine.work(sum(map(len, parts)) // 4)
    return machine.created(list_of([item for part in parts for item in part]))


def _reverse(machine: Machine, arguments: list[Value]) -> Value:
    items = listed(arguments[0])
    machine.work(len(items) // 4)
    return machine.created(list_of(items[::-1]))


def _object(machine: Machine, arguments: list[Value]) -> Value:
    return _object_with(machine, {}, arguments)


def _put(machine: Machine, arguments: list[Value]) -> Value:
    """Return an object with further fields."""
    if not isinstance(arguments[0], ObjectValue):
        raise RunFault("wrong_type", f"Expected an object, not a {type_of(arguments[0])}.")
    fields = arguments[0].fields
    machine.work(len(fields) // 4)
    return _object_with(machine, dict(fields), arguments[1:])


def _object_with(machine: Machine, fields: dict[str, Value], more: list[Value]) -> Value:
    if len(more) % 2:
        raise RunFault("wrong_type", "Expected names and values in turn.")
    for name, value in zip(more[::2], more[1::2], strict=True):
        fields[text(name)] = value
    return machine.created(object_of(fields))


def _names(machine: Machine, arguments: list[Value]) -> Value:
    """Return the names of an object, sorted."""
    if not isinstance(arguments[0], ObjectValue):
        raise RunFault("wrong_type", f"Expected an object, not a {type_of(arguments[0])}.")
    names = arguments[0].fields
    machine.work(len(names))
    found: list[Value] = [*sorted(names)]
    return machine.created(list_of(found))


VALUE_FUNCTIONS: dict[str, tuple[Function, int, int | None]] = {
    "type": (_type, 1, 1),
    "length": (_length, 1, 1),
    "text": (_text, 1, 1),
    "concat": (_concat, 1, None),
    "join": (_join, 2, 2),
    "split": (_split, 2, 2),
    "part": (_part, 2, 3),
    "lower": (_lower, 1, 1),
    "upper": (_upper, 1, 1),
    "contains": (_contains, 2, 2),
    "prefix": (_has_prefix, 2, 2),
    "suffix": (_has_suffix, 2, 2),
    "list": (_list, 0, None),
    "range": (_range, 1, 2),
    "first": (_first, 1, 1),
    "last": (_last, 1, 1),
    "rest": (_rest, 1, 1),
    "nth": (_nth, 2, 2),
    "append": (_append, 2, None),
    "join-lists": (_joined, 1, None),
    "reverse": (_reverse, 1, 1),
    "object": (_object, 0, None),
    "put": (_put, 3, None),
    "names": (_names, 1, 1),
}
