"""The tests of a join as Python closures, called with the entries of a partial match. Plain module.

`Slot(level, field)` is a value of such a tuple of entries: value `field` of the entry at `level`.
A closure is built once per pattern, because a join calls it for each pair that it examines.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from registrations.filters.ast import Const
from registrations.filters.quantities import (
    Quantity,
    difference_of,
    product_of,
    quantity_of,
    quotient_of,
    sum_of,
)
from registrations.temporal.entries import Entry, equality_key
from registrations.temporal.expressions import (
    AnyTest,
    BoundVariable,
    Calculation,
    EveryTest,
    Expression,
    JoinTest,
    NegatedTest,
    Relation,
)

Entries = Sequence[Entry]
Check = Callable[[Entries], bool]
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_OPERATIONS = {"+": sum_of, "-": difference_of, "*": product_of, "/": quotient_of}


class Slot(NamedTuple):
    """A value of a tuple of entries."""

    level: int
    field: int


Slots = Mapping[str, Slot]  # of each variable


def compiled(test: JoinTest, slots: Slots) -> Check:
    """Return a closure that evaluates a test."""
    match test:
        case EveryTest(items):
            return all_of([compiled(item, slots) for item in items])
        case AnyTest(items):
            checks = [compiled(item, slots) for item in items]
            return lambda entries: any(check(entries) for check in checks)
        case NegatedTest(item):
            check = compiled(item, slots)
            return lambda entries: not check(entries)
    return _relation(test, slots)


def all_of(checks: Sequence[Check]) -> Check:
    """Return a closure that holds if all of some do."""
    if len(checks) == 1:
        return checks[0]
    return lambda entries: all(check(entries) for check in checks)


def _relation(test: Relation, slots: Slots) -> Check:
    left, right = test.left, test.right
    if test.op in _ORDERS:
        return _order(test, slots)
    if isinstance(left, Calculation) or isinstance(right, Calculation):
        return _equal_quantities(test, slots)
    one, other = _key(left, slots), _key(right, slots)
    if test.op == "=":
        return lambda entries: one(entries) == other(entries)
    return lambda entries: one(entries) != other(entries)


def _order(test: Relation, slots: Slots) -> Check:
    holds = _ORDERS[test.op]
    if isinstance(test.left, BoundVariable) and isinstance(test.right, BoundVariable):
        (one, first), (other, second) = slots[test.left.name], slots[test.right.name]

        def in_order(entries: Entries) -> bool:
            a, b = entries[one].quantities[first], entries[other].quantities[second]
            return a is not None and b is not None and a[0] == b[0] and holds(a[1], b[1])

        return in_order
    left, right = _quantity(test.left, slots), _quantity(test.right, slots)

    def calculated_in_order(entries: Entries) -> bool:
        a, b = left(entries), right(entries)
        return a is not None and b is not None and a[0] == b[0] and holds(a[1], b[1])

    return calculated_in_order


def _equal_quantities(test: Relation, slots: Slots) -> Check:
    left, right = _quantity(test.left, slots), _quantity(test.right, slots)
    expected = test.op == "="

    def equal(entries: Entries) -> bool:
        a, b = left(entries), right(entries)
        return a is not None and b is not None and (a == b) == expected

    return equal


def _key(expression: Expression, slots: Slots) -> Callable[[Entries], str]:
    if isinstance(expression, BoundVariable):
        level, index = slots[expression.name]
        return lambda entries: entries[level].keys[index]
    assert isinstance(expression, Const)  # noqa: S101
    key = equality_key(expression.value)
    return lambda entries: key


def _quantity(expression: Expression, slots: Slots) -> Callable[[Entries], Quantity | None]:
    match expression:
        case BoundVariable(name):
            level, index = slots[name]
            return lambda entries: entries[level].quantities[index]
        case Const(value):
            constant = quantity_of(value)
            return lambda entries: constant
    return _calculated(expression, slots)


def _calculated(expression: Calculation, slots: Slots) -> Callable[[Entries], Quantity | None]:
    left, right = _quantity(expression.left, slots), _quantity(expression.right, slots)
    operation = _OPERATIONS[expression.op]

    def calculate(entries: Entries) -> Quantity | None:
        a, b = left(entries), right(entries)
        return None if a is None or b is None else operation(a, b)

    return calculate
