"""What a test looks at. Plain module."""

from collections.abc import Iterator

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Exists,
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


def paths_of(part: Node | Operand) -> Iterator[Path]:
    """The paths of a test or an operand, as they stand: what must be there for a test to hold. None
    of a connective, of `not`, of `within`, and of a type.
    """
    match part:
        case Path():
            yield part
        case Compare(_, left, right) | Arithmetic(_, left, right):
            yield from paths_of(left)
            yield from paths_of(right)
        case In(path) | Text(_, path) | Exists(path):
            yield path


def attributes_of(part: Node | Operand) -> Iterator[str]:
    """The names of those that are attributes."""
    return (path.name for path in paths_of(part) if path.space == "attributes")


def all_paths(node: Node, base: str = "") -> Iterator[Path]:
    """All paths that a filter looks at, those in `within` as they are from the event on."""
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
        case _:
            for path in paths_of(node):
                yield moved(path, base)


def asks_of_type(node: Node) -> bool:
    """Whether a filter asks for a type and what is declared below it."""
    match node:
        case And(items) | Or(items):
            return any(map(asks_of_type, items))
        case Not(item) | Within(_, item):
            return asks_of_type(item)
    return isinstance(node, OfType)


def moved(path: Path, base: str) -> Path:
    """A path into an object, as it is from the event on; `base` leads to the object."""
    if not base or path.space != "attributes":
        return path
    return Path(f"{base}.{path.name}", place=path.place)
