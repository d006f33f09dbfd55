"""The tests on the whole event that a test of one object implies; indexes find the filter by them.
Plain module.
"""

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Exists,
    Expression,
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
    """Return a test that the event passes if one of its objects passes the item: each value of the
    object is also a value at the whole path. A negated test implies nothing.
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
        case Expression():
            return And(tuple(Exists(moved(path, base)) for path in paths_of(node)))
        case Not():
            return Truth(True)
    return node


def _compared(node: Compare, base: str) -> Node:
    """Return what a comparison implies; `!=` and arithmetic, which depend on all values, imply only
    that their paths exist.
    """
    if node.op == "!=" or isinstance(node.left, Arithmetic) or isinstance(node.right, Arithmetic):
        return And(tuple(Exists(moved(path, base)) for path in paths_of(node)))
    return Compare(node.op, _side(node.left, base), _side(node.right, base))


def _side(operand: Operand, base: str) -> Operand:
    return moved(operand, base) if isinstance(operand, Path) else operand
