"""The paths that tests and filters read. Plain module."""

from collections.abc import Iterator

from eventhub.event.filterable import is_in_data
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Exists,
    Expression,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Text,
    Within,
)
from registrations.filters.expressions import program_of


def paths_of(part: Node | Operand) -> Iterator[Path]:
    """Yield the paths of a test or an operand, which must exist for the test to hold. A connective,
    `not`, `within` and a type test have none.
    """
    match part:
        case Path():
            yield part
        case Compare(_, left, right) | Arithmetic(_, left, right):
            yield from paths_of(left)
            yield from paths_of(right)
        case In(path) | Text(_, path) | Exists(path):
            yield path
        case Expression():
            yield from program_of(part).required


def attributes_of(part: Node | Operand) -> Iterator[str]:
    """Yield the names of the attributes among the paths."""
    return (path.name for path in paths_of(part) if path.space == "attributes")


def all_paths(node: Node, base: str = "") -> Iterator[Path]:
    """Yield all paths that a filter reads; those in `within` as full paths of the event."""
    match node:
        case And(items) | Or(items):
            for item in items:
                yield from all_paths(item, base)
        case Not(item):
            yield from all_paths(item, base)
        case Within(path, item):
            inner = moved(path, base)
            yield inner
            yield from all_paths(item, inner.name)
        case Expression():
            for path in program_of(node).paths:
                yield moved(path, base)
        case _:
            for path in paths_of(node):
                yield moved(path, base)


def reads_data(node: Node) -> bool:
    """Return whether a filter reads `data`, the body of an event."""
    return any(path.space == "attributes" and is_in_data(path.name) for path in all_paths(node))


def asks_of_type(node: Node) -> bool:
    """Return whether a filter tests for a type and its subtypes."""
    match node:
        case And(items) | Or(items):
            return any(map(asks_of_type, items))
        case Not(item) | Within(_, item):
            return asks_of_type(item)
    return isinstance(node, OfType)


def has_expression(node: Node) -> bool:
    """Return whether a part of a filter is evaluated as an expression."""
    match node:
        case And(items) | Or(items):
            return any(map(has_expression, items))
        case Not(item) | Within(_, item):
            return has_expression(item)
    return isinstance(node, Expression)


def moved(path: Path, base: str) -> Path:
    """Return the full path of a path into the object at `base`."""
    if not base or path.space != "attributes":
        return path
    return Path(f"{base}.{path.name}", position=path.position)
