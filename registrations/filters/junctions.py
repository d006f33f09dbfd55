"""And, or and not of nodes, simplified while a language builds its tree. Plain module."""

from collections.abc import Iterable

from registrations.filters.ast import (
    And,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Not,
    Or,
    Path,
    Text,
    Truth,
)

ALWAYS, NEVER = Truth(True), Truth(False)
_ORDERS = ("<", "<=", ">", ">=")


def all_of(nodes: Iterable[Node]) -> Node:
    """Join nodes by `and`. Constants, repetitions, and tests that a path exists which others
    require are left out; a test and its opposite never hold.
    """
    found = _flat(nodes, And)
    if NEVER in found or _contradicts(found):
        return NEVER
    found.pop(ALWAYS, None)
    needed = {path for node in found for path in _needed(node)}
    left = [node for node in found if not (isinstance(node, Exists) and node.path in needed)]
    return _joined(left, And, ALWAYS)


def any_of(nodes: Iterable[Node]) -> Node:
    """Join nodes by `or`. Constants and repetitions are left out; a test or its opposite is
    always true.
    """
    found = _flat(nodes, Or)
    if ALWAYS in found or _contradicts(found):
        return ALWAYS
    found.pop(NEVER, None)
    return _joined(list(found), Or, NEVER)


def opposite(node: Node) -> Node:
    """Return the negation of a node."""
    if isinstance(node, Truth):
        return Truth(not node.value, node.position)
    return node.item if isinstance(node, Not) else Not(node, node.position)


def _contradicts(nodes: dict[Node, None]) -> bool:
    """Return whether a node is the negation of another."""
    return any(isinstance(node, Not) and node.item in nodes for node in nodes)


def _flat(nodes: Iterable[Node], kind: type[And] | type[Or]) -> dict[Node, None]:
    found: dict[Node, None] = {}
    for node in nodes:
        if isinstance(node, kind):
            found.update(dict.fromkeys(node.items))
        else:
            found[node] = None
    return found


def _joined(nodes: list[Node], kind: type[And] | type[Or], neutral: Truth) -> Node:
    if len(nodes) < 2:
        return nodes[0] if nodes else neutral
    return kind(tuple(nodes), nodes[0].position)


def _needed(node: Node) -> Iterable[Path]:
    match node:
        case Compare(_, Path() as path, Const()) | In(path) | Text(_, path):
            yield path
