"""What a test of one object says of the whole event, so that it is found by keys as any other
filter. Plain module.
"""

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Exists,
    In,
    Node,
    Not,
    Operand,
    Or,
    Path,
    Text,
    Truth,
    Within,
)
from registrations.filters.paths import moved, paths_of


def implied_by(node: Within) -> Node:
    """What holds of the event wherever one object holds the item: a value that the object has is
    among those that the path leads to. Nothing follows from what the object does not have.
    """
    return _of_all(node.item, node.path.name)


def _of_all(node: Node, base: str) -> Node:
    match node:
        case And(items):
            return And(tuple(_of_all(item, base) for item in items))
        case Or(items):
            return Or(tuple(_of_all(item, base) for item in items))
        case Within(path, item):
            return _of_all(item, moved(path, base).name)
        case In(path, values):
            return In(moved(path, base), values)
        case Text(op, path, text):
            return Text(op, moved(path, base), text)
        case Exists(path):
            return Exists(moved(path, base))
        case Compare():
            return _compared(node, base)
        case Not():
            return Truth(True)
    return node


def _compared(node: Compare, base: str) -> Node:
    """Of `!=` and of sums, which look at all values together, that there are some."""
    if node.op == "!=" or isinstance(node.left, Arithmetic) or isinstance(node.right, Arithmetic):
        return And(tuple(Exists(moved(path, base)) for path in paths_of(node)))
    return Compare(node.op, _side(node.left, base), _side(node.right, base))


def _side(operand: Operand, base: str) -> Operand:
    return moved(operand, base) if isinstance(operand, Path) else operand
