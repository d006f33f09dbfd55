"""Tests that hold for every event, or for none, whatever it has: probable mistakes. Plain module.

Sound and no more: what is not found may be certain all the same.
"""

from eventhub.event.envelope import Event
from registrations.filters.ast import (
    Arithmetic,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Operand,
    Path,
    Text,
)
from registrations.filters.evaluate import holds
from registrations.filters.values import number_of

_NOTHING = Event("", "", {})


def certain(test: Node) -> bool | None:
    """Whether a single test, without `not`, surely holds or surely does not; None if that depends
    on the event.
    """
    match test:
        case Compare(op, Path(_, "attributes"), right) if isinstance(right, Const):  # most are
            is_order = op not in ("=", "!=")
            return False if is_order and isinstance(right.value, bool | None) else None
        case Compare(op, left, right):
            if not _looks(left) and not _looks(right):
                return holds(test, _NOTHING)
            if _never(op, left, right) or _never(op, right, left):
                return False
            return True if op == "!=" and (_apart(left, right) or _apart(right, left)) else None
        case In(path, values):
            return False if all(_never("=", path, value) for value in values) else None
        case Text(_, path):
            return False if _is_priority(path) else None
        case Exists(path):
            return True if _is_priority(path) else None
    return None


def _never(op: str, one: Operand, other: Operand) -> bool:
    """True if a relation of something to a constant cannot hold."""
    if not isinstance(other, Const) or isinstance(one, Const):
        return False
    is_truth = other.value is None or isinstance(other.value, bool)  # which have no order
    if op == "=":
        return _kind(one) not in (None, _kind(other))
    if op == "!=":
        return False
    numeric = isinstance(one, Arithmetic) or _is_priority(one)
    return is_truth or (numeric and number_of(other.value) is None)


def _apart(one: Operand, other: Operand) -> bool:
    """True if both are always there and never equal."""
    return _is_priority(one) and isinstance(other, Const) and _kind(other) != "number"


def _kind(operand: Operand) -> str | None:
    """What an operand is where it is something; None for what may be anything."""
    match operand:
        case Const(value):
            if value is None or isinstance(value, bool):
                return "truth"
            return "text" if isinstance(value, str) else "number"
        case Arithmetic():
            return "number"
        case Path(_, "attributes"):
            return None
    return "number" if _is_priority(operand) else "text"


def _is_priority(operand: Operand) -> bool:
    """The one field of the envelope that is a number, and always there."""
    return isinstance(operand, Path) and (operand.space, operand.name) == ("envelope", "priority")


def _looks(operand: Operand) -> bool:
    """True if an event is looked into for it."""
    if isinstance(operand, Arithmetic):
        return _looks(operand.left) or _looks(operand.right)
    return isinstance(operand, Path)
