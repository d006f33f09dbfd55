"""The functions by which programs read events, remember values, and cause outputs. Plain module.

They reach nothing but the machine's host: no file, no network, no clock. `now` is the time at which
the event was appended.
"""

from registrations.agents.errors import RunFault
from registrations.agents.machine import UNDEFINED, Function, Machine
from registrations.agents.value_functions import text
from registrations.agents.values import (
    EventValue,
    ObjectValue,
    Value,
    events_in,
    parts_of,
    type_of,
    value_of_json,
)
from registrations.filters.ast import Path, TextPosition
from registrations.filters.errors import FilterSyntax
from registrations.filters.predicate import path_of
from registrations.filters.values import MISSING, value_of

_NOWHERE = TextPosition(1, 1)


def _event(machine: Machine, arguments: list[Value]) -> Value:
    return machine.host.event


def _now(machine: Machine, arguments: list[Value]) -> Value:
    return machine.host.event.position.time_us / 1_000_000


def _field(machine: Machine, arguments: list[Value]) -> Value:
    """Return the value at a path of an event or an object; without one the last argument, or
    null.
    """
    owner, path, *default = arguments
    machine.read(len(text(path)))
    if isinstance(owner, EventValue):
        found = _field_of_event(machine, owner, text(path))
    elif isinstance(owner, ObjectValue):
        found = _field_of_object(owner, text(path))
    else:
        raise RunFault("wrong_type", f"Expected an event or an object, not a {type_of(owner)}.")
    if found is None:
        return default[0] if default else None
    return found


def _field_of_event(machine: Machine, owner: EventValue, name: str) -> Value:
    if name == "@sequence":
        return owner.position.sequence
    found = value_of(_path(name), owner.event)
    if found is MISSING:
        return None
    if isinstance(found, dict | list | tuple):
        machine.work(owner.size // 256)  # its parts are counted afterwards
        value = value_of_json(found)
        machine.work(parts_of(value) // 4)
        return machine.created(value)
    machine.read(len(found) if isinstance(found, str) else 0)
    return value_of_json(found)


def _path(name: str) -> Path:
    try:
        return path_of(name, _NOWHERE)
    except FilterSyntax as error:
        raise RunFault("wrong_type", error.message) from error


def _field_of_object(owner: ObjectValue, name: str) -> Value:
    """Return a field by its name, or by a path of names."""
    if name in owner.fields or "." not in name:
        return owner.fields.get(name)
    found: Value = owner
    for step in name.split("."):
        if not isinstance(found, ObjectValue):
            return None
        found = found.fields.get(step)
    return found


def _recall(machine: Machine, arguments: list[Value]) -> Value:
    name, *default = arguments
    found = machine.host.recall(text(name))
    if found is UNDEFINED:
        return default[0] if default else None
    return found


def _remember(machine: Machine, arguments: list[Value]) -> Value:
    machine.work(parts_of(arguments[1]) // 4)
    machine.host.remember(text(arguments[0]), arguments[1])
    return arguments[1]


def _forget(machine: Machine, arguments: list[Value]) -> Value:
    machine.host.remember(text(arguments[0]), UNDEFINED)
    return None


def _notify(machine: Machine, arguments: list[Value]) -> Value:
    """Notify of the event, or of these events."""
    machine.work(sum(map(parts_of, arguments)) // 4)
    machine.host.notify([*events_in(arguments)] if arguments else [machine.host.event])
    return None


def _announce(machine: Machine, arguments: list[Value]) -> Value:
    """Announce a new event of a type, `type` or `domain::type`, with attributes."""
    domain, _, name = text(arguments[0]).rpartition("::")
    attributes = arguments[1] if len(arguments) > 1 else ObjectValue({}, 1, 0)
    machine.work(parts_of(attributes) // 4)
    machine.host.announce(domain, name, attributes)
    return None


HOST_FUNCTIONS: dict[str, tuple[Function, int, int | None]] = {
    "event": (_event, 0, 0),
    "now": (_now, 0, 0),
    "field": (_field, 2, 3),
    "recall": (_recall, 1, 2),
    "remember": (_remember, 2, 2),
    "forget": (_forget, 1, 1),
    "notify": (_notify, 0, None),
    "announce": (_announce, 1, 2),
}
