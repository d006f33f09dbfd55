"""What a filter says of an event, straight from the tree. Plain.

This is what every strategy of matching must agree with. It is asked for every event and filter by
the naive scan, and for what is left of a conjunction by the others.
"""

from collections.abc import Callable

from eventhub.event.envelope import Event
from registrations.lang.ast import (
    And,
    Compare,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Or,
    Text,
    Truth,
)
from registrations.lang.event_values import EventValues, deciding, keys_of, meet
from registrations.lang.values import MISSING, key_of, ordered, value_of

Kin = Callable[[Event], tuple[str, ...]]  # the event's type and the declared types above it


def only_itself(event: Event) -> tuple[str, ...]:
    """The kin where no types are declared."""
    return (event.type,)


def holds(node: Node, event: Event | EventValues, kin: Kin = only_itself) -> bool:
    """True if the event is what the filter asks for. Whoever asks more than once about one event
    gives its `EventValues`.
    """
    values = EventValues(event) if isinstance(event, Event) else event
    return _holds(node, values, kin)


def _holds(node: Node, values: EventValues, kin: Kin) -> bool:
    match node:
        case And(items):
            return all(_holds(item, values, kin) for item in items)
        case Or(items):
            return any(_holds(item, values, kin) for item in items)
        case Not(item):
            return not _holds(item, values, kin)
        case Compare():
            return _compares(node, values)
        case In():
            return _is_in(node, values)
        case Text():
            return values.has(node)
        case Exists(path):
            return value_of(path, values.event) is not MISSING
        case OfType():
            return is_of(node, values.event, kin)
        case Truth(value):
            return value


def _compares(node: Compare, values: EventValues) -> bool:
    """One relation; `!=` holds where both sides are there and no two of their values are equal."""
    left, right = values.of(node.left), values.of(node.right)
    if not left or not right:
        return False
    if node.op in ("=", "!="):
        return meet(left, right) == (node.op == "=")
    least = node.op in ("<", "<=")
    ones, others = deciding(left, least=least), deciding(right, least=not least)
    return any(ordered(node.op, one, other) for one in ones for other in others)


def _is_in(node: In, values: EventValues) -> bool:
    keys = keys_of(values.of(node.path))
    return any(key_of(wanted.value) in keys for wanted in node.values) if keys else False


def is_of(node: OfType, event: Event, kin: Kin = only_itself) -> bool:
    """True if the event's type, or a declared one above it, is meant."""
    if node.domain is not None and event.domain != node.domain:
        return False
    if node.type is None:
        return True
    names = kin(event)
    if node.below:
        return any(name.startswith(node.type + ".") for name in names)
    return node.type in names
