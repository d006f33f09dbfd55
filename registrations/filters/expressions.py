"""The expressions in a tree: parts of CESQL and CEL filters that have no other form, evaluated
within bounds. Plain module.
"""

from collections.abc import Callable
from functools import lru_cache

from eventhub.base import limits
from registrations.filters.ast import Expression
from registrations.filters.cel.program import cel_program
from registrations.filters.cesql.program import cesql_program
from registrations.filters.event_values import EventValues
from registrations.filters.program import Program, Result

_PROGRAMS: dict[str, Callable[[str], Program]] = {"cesql": cesql_program, "cel": cel_program}


def program_of(expression: Expression) -> Program:
    """Return the program of an expression. Raises FilterSyntax, FilterTooLarge."""
    return _program(expression.language, expression.text)


def result_of(expression: Expression, values: EventValues) -> Result:
    """Evaluate an expression for an event."""
    return program_of(expression).run(values)


@lru_cache(maxsize=limits.EXPRESSIONS_CACHED_MAX)
def _program(language: str, text: str) -> Program:
    return _PROGRAMS[language](text)
