"""Steps that widen an alternative: drop its values, then its attributes. Plain module."""

from registrations.filters.ast import Compare, Const, Exists, Node, Not, OfType, Path
from registrations.filters.normal import Alternative
from registrations.filters.paths import paths_of

_GATE = ("domain", "type", "application")


def unchanged(parts: Alternative) -> Alternative:
    return parts


def without_values(parts: Alternative) -> Alternative:
    """Return the gate and tests that the attributes exist."""
    gate = gate_alone(parts)
    there = {
        Exists(path)
        for part in parts - gate
        if not isinstance(part, Not)
        for path in paths_of(part)
        if path.space == "attributes"
    }
    return gate | there


def gate_alone(parts: Alternative) -> Alternative:
    """Return the gate: the tests of the domain, the type and the application."""
    return frozenset(part for part in parts if is_gate(part))


def is_gate(part: Node) -> bool:
    match part:
        case OfType():
            return True
        case Compare("=", Path() as path, Const()):
            return is_of_gate(path)
    return False


def is_of_gate(path: Path) -> bool:
    return path.space == "envelope" and path.name in _GATE
