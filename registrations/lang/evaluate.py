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
from registrations.lang.values import (
    MISSING,
    fits,
    meet,
    members,
    operands_of,
    ordered,
    outermost,
    value_of,
    wildcard_parts,
)

_PAIRS_MAX = 100  # of more, only those that decide are compared: two lists may be long
Kin = Callable[[Event], tuple[str, ...]]  # the event's type and the declared types above it


def only_itself(event: Event) -> tuple[str, ...]:
    """The kin where no types are declared."""
    return (event.type,)


def holds(node: Node, event: Event, kin: Kin = only_itself) -> bool:
    """True if the event is what the filter asks for."""
    match node:
        case And(items):
            return all(holds(item, event, kin) for item in items)
        case Or(items):
            return any(holds(item, event, kin) for item in items)
        case Not(item):
            return not holds(item, event, kin)
        case Compare():
            return compares(node, event)
        case In(path, values):
            return meet(members(value_of(path, event)), (value.value for value in values))
        case Text():
            return any(_tested(node, one) for one in members(value_of(node.path, event)))
        case Exists(path):
            return value_of(path, event) is not MISSING
        case OfType():
            return is_of(node, event, kin)
        case Truth(value):
            return value


def compares(node: Compare, event: Event) -> bool:
    """One relation; `!=` holds where both sides are there and no two of their values are equal."""
    left, right = list(operands_of(node.left, event)), list(operands_of(node.right, event))
    if node.op in ("=", "!="):
        if not left or not right:
            return False
        return meet(left, right) == (node.op == "=")
    if len(left) * len(right) > _PAIRS_MAX:
        least = node.op in ("<", "<=")
        left, right = outermost(left, least=least), outermost(right, least=not least)
    return any(ordered(node.op, one, other) for one in left for other in right)


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


def _tested(node: Text, value: object) -> bool:
    if not isinstance(value, str):
        return False
    if node.op == "prefix":
        return value.startswith(node.text)
    if node.op == "suffix":
        return value.endswith(node.text)
    if node.op == "substring":
        return node.text in value
    return fits(wildcard_parts(node.text), value)
