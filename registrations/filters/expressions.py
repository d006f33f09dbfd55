"""The expressions in a tree: parts of CESQL and CEL filters that have no other form, evaluated
within bounds. Plain module.
"""

import logging
import time
from collections.abc import Callable

from eventhub.base import limits
from registrations.filters.ast import Expression, ExpressionLanguage
from registrations.filters.cel.program import cel_program
from registrations.filters.cesql.program import cesql_program
from registrations.filters.event_values import EventValues
from registrations.filters.program import Program
from registrations.filters.work import Result, TooMuchWork, Work

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
    """Evaluate an expression for an event, once. It has no exception: what the evaluation did not
    expect of a value is logged, and must not stop the matching of other filters.
    """
    found = values.outcomes.get(expression)
    if found is None:
        found = values.outcomes[expression] = _evaluated(expression, values)
    return found


def _evaluated(expression: Expression, values: EventValues) -> Result:
    try:
        return program_of(expression).run(values, values.work or Work())
    except TooMuchWork:
        return Result(False, "it has an error: it takes too much work")
    except Exception as error:
        _failures.report(expression, error)
        return Result(False, "it has an error: it cannot be evaluated for this event")


class ExpressionFailures:
    """Logs unexpected errors of evaluations: one in LOG_REPEAT_S, with the number of those since.
    Threads may race; a line is then logged twice.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._next_s = 0.0
        self._suppressed = 0

    def report(self, expression: Expression, error: Exception) -> None:
        now_s = self._clock_s()
        if now_s < self._next_s:
            self._suppressed += 1
            return
        self._next_s, suppressed = now_s + limits.LOG_REPEAT_S, self._suppressed
        self._suppressed = 0
        _log.error(
            "expression_failed language=%s error=%s suppressed=%d text=%r",
            *(expression.language, type(error).__name__, suppressed),
            expression.text[: limits.EXPLAIN_CHARS_MAX],
            exc_info=error,
        )


_log = logging.getLogger(__name__)
_failures = ExpressionFailures()
