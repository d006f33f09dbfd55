"""The expressions in a tree: parts of CESQL and CEL filters that have no other form, evaluated
within bounds. Plain module.
"""

from collections.abc import Callable

from registrations.filters.ast import Expression, ExpressionLanguage
from registrations.filters.cel.program import cel_program
from registrations.filters.cesql.program import cesql_program
from registrations.filters.event_values import EventValues
from registrations.filters.program import Program, Result

_PROGRAMS: dict[ExpressionLanguage, Callable[[str], Program]] = {
    "cesql": cesql_program,
    "cel": cel_program,
}


def program_of(expression: Expression) -> Program:
    """Return the program of an expression. Raises FilterSyntax, FilterTooLarge."""
    found: Program | None = expression.program
    if found is None:
        found = _PROGRAMS[expression.language](expression.text)
        object.__setattr__(expression, "program", found)
    return found


def result_of(expression: Expression, values: EventValues) -> Result:
    """Evaluate an expression for an event."""
    return program_of(expression).run(values)
