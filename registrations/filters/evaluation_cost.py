"""The cost to evaluate a filter for an event. The unit, about 2 us, is the test of one value.
Plain module.

The estimate is for an event of usual size. A search in a text of 64 KiB takes thirty times as long,
and a wildcard that nearly matches each of a thousand texts a hundred times. Objects in a list are
evaluated all at once (objects.py), but one by one for sums and comparisons of two attributes.
"""

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Expression,
    In,
    Node,
    Not,
    Operand,
    Or,
    Text,
    Within,
)
from registrations.filters.expressions import program_of

_VALUES = 8  # list values that are compared in the time of one test
_OBJECTS = 4  # cost of a test of all objects of a list ...
_ONE_BY_ONE = 16  # ... and its factor where objects are evaluated one by one


def weight(node: Node, *, each: int = 1) -> int:
    """Return the cost if every test is evaluated. `each`: the factor of a test that is evaluated
    for objects one by one.
    """
    match node:
        case And(items) | Or(items):
            return sum(weight(item, each=each) for item in items)
        case Not(item):
            return weight(item, each=each)
        case Within(_, item):
            return _OBJECTS * weight(item, each=_ONE_BY_ONE)
        case In(_, values):
            return 1 + len(values) // _VALUES
        case Compare(_, left, right):
            is_of_one = isinstance(left, Const) or isinstance(right, Const)
            sums = _sums(left) + _sums(right)
            return (1 + sums) * (1 if is_of_one and not sums else each)
        case Expression():
            return program_of(node).cost * each
        case Text("wildcard", parts=parts):
            return max(len(parts) - 2, 1)  # each part between two stars is a search
    return 1


def _sums(operand: Operand) -> int:
    if isinstance(operand, Arithmetic):
        return 1 + _sums(operand.left) + _sums(operand.right)
    return 0
