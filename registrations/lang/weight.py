"""What it takes to try a filter for an event, in units of about 2 us: a test of one value. Plain.

An event of usual size is meant. What is looked for in a text of 64 KiB takes thirty times as long,
and a wildcard that each of a thousand texts nearly fits a hundred times.
"""

from registrations.lang.ast import And, Arithmetic, Compare, In, Node, Not, Operand, Or, Text

_VALUES = 8  # of a list that are compared in the time of a test


def weight(node: Node) -> int:
    """As if no test decided before the last."""
    match node:
        case And(items) | Or(items):
            return sum(map(weight, items))
        case Not(item):
            return weight(item)
        case In(_, values):
            return 1 + len(values) // _VALUES
        case Compare(_, left, right):
            return 1 + _sums(left) + _sums(right)
        case Text("wildcard", parts=parts):
            return max(len(parts) - 2, 1)  # what stands between two stars is looked for
    return 1


def _sums(operand: Operand) -> int:
    if isinstance(operand, Arithmetic):
        return 1 + _sums(operand.left) + _sums(operand.right)
    return 0
