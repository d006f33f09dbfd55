"""The reference evaluation of a filter for an event, on the tree. Plain module.

Every matching strategy must agree with it. The naive scan calls it for every event and filter, the
other strategies for the tests of a conjunction that no index decides.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_

from eventhub.event.envelope import Event
from registrations.filters.ast import (
    And,
    Compare,
    Exists,
    Expression,
    In,
    Node,
    Not,
    OfType,
    Or,
    Text,
    Truth,
    Within,
)
from registrations.filters.event_values import EventValues, deciding, keys_of, meet
from registrations.filters.expressions import result_of
from registrations.filters.objects import Objects
from registrations.filters.paths import all_paths
from registrations.filters.values import MISSING, key_of, ordered

# Returns an event's type, then its declared supertypes.
TypeHierarchy = Callable[[Event], tuple[str, ...]]


def no_supertypes(event: Event) -> tuple[str, ...]:
    """Return the event's type alone: the hierarchy where no types are declared."""
    return (event.type,)


def holds(node: Node, event: Event | EventValues, hierarchy: TypeHierarchy = no_supertypes) -> bool:
    """Return whether the filter matches the event. To evaluate several filters for one event, pass
    its `EventValues`.
    """
    values = EventValues(event) if isinstance(event, Event) else event
    return _holds(node, values, hierarchy)


def _holds(node: Node, values: EventValues, hierarchy: TypeHierarchy) -> bool:
    match node:
        case And(items):
            return all(_holds(item, values, hierarchy) for item in items)
        case Or(items):
            return any(_holds(item, values, hierarchy) for item in items)
        case Not(item):
            return not _holds(item, values, hierarchy)
        case Within(path, item):
            return bool(_holding(item, values.within(path.name), values, hierarchy))
    return _test_holds(node, values, hierarchy)


def _holding(node: Node, objects: Objects, values: EventValues, hierarchy: TypeHierarchy) -> int:
    """Return the objects that satisfy a filter, as bits."""
    match node:
        case And(items):
            found = objects.every
            for item in items:
                found = found and found & _holding(item, objects, values, hierarchy)
            return found
        case Or(items):
            return reduce(or_, (_holding(item, objects, values, hierarchy) for item in items), 0)
        case Not(item):
            return objects.every & ~_holding(item, objects, values, hierarchy)
        case Within(path, item):
            inner = objects.within(path.name)
            return inner.owning(_holding(item, inner, values, hierarchy))
    found_at_once = objects.holding(node)
    if found_at_once is not None:
        return found_at_once
    reads_objects = any(path.space == "attributes" for path in all_paths(node))
    if not reads_objects:
        return objects.every if _test_holds(node, values, hierarchy) else 0
    return _one_by_one(node, objects, values, hierarchy)


def _one_by_one(test: Node, objects: Objects, values: EventValues, hierarchy: TypeHierarchy) -> int:
    found = objects.verdicts.get(test)
    if found is None:
        verdicts = (_test_holds(test, one, hierarchy) for one in values.of_each(objects))
        found = sum(1 << index for index, holds in enumerate(verdicts) if holds)
        objects.verdicts[test] = found
    return found


def _test_holds(node: Node, values: EventValues, hierarchy: TypeHierarchy) -> bool:
    match node:
        case Compare():
            return _compares(node, values)
        case In():
            return _is_in(node, values)
        case Text():
            return values.has(node)
        case Exists(path):
            return values.value(path) is not MISSING
        case Expression():
            return result_of(node, values).holds
        case OfType():
            return has_type(node, values.event, hierarchy)
        case Truth(value):
            return value
    raise TypeError(node)


def _compares(node: Compare, values: EventValues) -> bool:
    """Evaluate a relation; `!=` holds if both sides exist and no two of their values are equal."""
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
    return any(key_of(constant.value) in keys for constant in node.values) if keys else False


def has_type(node: OfType, event: Event, hierarchy: TypeHierarchy = no_supertypes) -> bool:
    """Return whether the node names the event's type or one of its supertypes."""
    if node.domain is not None and event.domain != node.domain:
        return False
    if node.type is None:
        return True
    names = hierarchy(event)
    if node.below:
        return any(name.startswith(node.type + ".") for name in names)
    return node.type in names
