"""What it takes to try a filter for an event, in units of about 2 us: a test of one value.
Plain module.

An event of usual size is meant. What is looked for in a text of 64 KiB takes thirty times as long,
and a wildcard that each of a thousand texts nearly fits a hundred times. Objects in a list are
looked at together (objects.py), but one by one for sums and comparisons of two attributes.
"""

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    In,
    Node,
    Not,
    Operand,
    Or,
    Text,
    Within,
)

_VALUES = 8  # of a list that are compared in the time of a test
_OBJECTS = 4  # a test of all objects of a list, ...
_ONE_BY_ONE = 16  # ... and times as much where each is looked at by itself


def weight(node: Node, *, each: int = 1) -> int:
    """As if no test decided before the last. `each`: times a test counts that is asked of objects
    one by one.
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
        case Text("wildcard", parts=parts):
            return max(len(parts) - 2, 1)  # what stands between two stars is looked for
    return 1


def _sums(operand: Operand) -> int:
    if isinstance(operand, Arithmetic):
        return 1 + _sums(operand.left) + _sums(operand.right)
    return 0
