"""Tests with the same result for every event: probable mistakes. Plain module.

The analysis is sound but incomplete: a test that it does not find may still be constant.
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


def constant_result(test: Node) -> bool | None:
    """Return the result of a single test (without `not`) if it is the same for every event; None if
    it may depend on the event.
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
    """Return whether a relation of an operand to a constant can never hold."""
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
    """Return whether both operands always exist and are never equal."""
    return _is_priority(one) and isinstance(other, Const) and _kind(other) != "number"


def _kind(operand: Operand) -> str | None:
    """Return the kind of an operand's values; None if it may have any."""
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
    """Return whether the operand is `@priority`: the envelope's only number, always present."""
    return isinstance(operand, Path) and (operand.space, operand.name) == ("envelope", "priority")


def _looks(operand: Operand) -> bool:
    """Return whether the operand reads the event."""
    if isinstance(operand, Arithmetic):
        return _looks(operand.left) or _looks(operand.right)
    return isinstance(operand, Path)
