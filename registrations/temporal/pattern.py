"""A temporal pattern as it was parsed: event patterns that bind variables, tests that relate them,
and events that must not exist (OIF-20). Plain module.
"""

from typing import NamedTuple

from registrations.filters.ast import Node, Path, TextPosition, Truth
from registrations.filters.printed import printed, printed_operand
from registrations.temporal.expressions import BoundVariable, JoinTest, printed_test

SEQUENCE = Path("sequence", "envelope")  # the event's position in its stream, as a number


class FieldBinding(NamedTuple):
    """A field whose value a variable is bound to."""

    path: Path
    variable: BoundVariable


class EventPattern(NamedTuple):
    """One event: a filter that it passes, and the fields that it must have with a single value."""

    filter: Node
    bindings: tuple[FieldBinding, ...]
    position: TextPosition

    def text(self) -> str:
        """Print it in prefix form."""
        slots = [f"({printed_operand(path)} ?{variable.name})" for path, variable in self.bindings]
        where = [] if self.filter == Truth(True) else [f"(where {printed(self.filter)})"]
        return f"({' '.join(['event', *slots, *where])})"


class AbsentEvent(NamedTuple):
    """An event that must not be in the memory: one that passes the tests, whose variables are its
    own and those of the pattern's events.
    """

    event: EventPattern
    tests: tuple[JoinTest, ...]

    def text(self) -> str:
        """Print it in prefix form."""
        tests = [f"(test {printed_test(test)})" for test in self.tests]
        return f"({' '.join(['not', self.event.text(), *tests])})"


class TemporalPattern(NamedTuple):
    """A parsed text. `memory`: over how many of the most recent events of the streams."""

    text: str
    memory: int
    events: tuple[EventPattern, ...]
    absent: tuple[AbsentEvent, ...]
    tests: tuple[JoinTest, ...]
