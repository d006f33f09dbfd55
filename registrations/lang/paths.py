"""What a test looks at. Plain."""

from collections.abc import Iterator

from registrations.lang.ast import Arithmetic, Compare, Exists, In, Node, Operand, Path, Text


def paths_of(part: Node | Operand) -> Iterator[Path]:
    """The paths of a test or an operand, as they stand: what must be there for a test to hold. None
    of a connective, of `not`, and of a type.
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
