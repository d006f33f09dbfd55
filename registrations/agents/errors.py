"""The errors of agents: of their texts, in the error tree of eventhub/base/errors.py, and faults of
their runs. Plain module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from eventhub.base.errors import BadRequest, EventHubError
from registrations.filters.ast import TextPosition
from registrations.filters.errors import FilterSyntax, FilterTooLarge

_TOO_LARGE = {
    "chars_max": "A program has at most {:,} characters.",
    "parts_max": "A program has at most {:,} words and constants.",
    "depth_max": "Forms are nested at most {} deep; define functions.",
    "recent_max": "An agent examines at most the {:,} most recent events.",
}
# Faults that say how much a run took, not what it did: the agent would exceed them again.
LIMITS = frozenset(("steps_max", "memory_max", "call_depth_max", "outputs_max", "state_max"))


class ProgramSyntax(BadRequest):
    """The program has a syntax error at `line` and `column`, both from 1."""


class ProgramTooLarge(EventHubError):
    """The program exceeds a limit, which the message names."""

    status = 422


class Fault(NamedTuple):
    """Why a run ended early, and where in the program. `code`: a limit, or `wrong_type`,
    `number_out_of_range`, `value_too_large`, `not_defined`.
    """

    code: str
    message: str
    line: int
    column: int

    @property
    def is_limit(self) -> bool:
        return self.code in LIMITS


class RunFault(Exception):
    """A run cannot go on. The machine adds where."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


def program_syntax(message: str, position: TextPosition) -> ProgramSyntax:
    """Build the error of a position."""
    return ProgramSyntax(message, line=position.line, column=position.column)


def program_too_large(position: TextPosition, **bound: int) -> ProgramTooLarge:
    """Build the error of one limit."""
    ((name, most),) = bound.items()
    details: dict[str, Any] = {name: most, "line": position.line, "column": position.column}
    return ProgramTooLarge(_TOO_LARGE[name].format(most), **details)


@contextmanager
def as_program() -> Iterator[None]:
    """Raise the errors of forms and filters as those of a program."""
    try:
        yield
    except FilterSyntax as error:
        raise ProgramSyntax(error.message, **error.details) from error
    except FilterTooLarge as error:
        bound = {name: most for name, most in error.details.items() if name in _TOO_LARGE}
        message = " ".join(_TOO_LARGE[name].format(most) for name, most in bound.items())
        raise ProgramTooLarge(message or error.message, **error.details) from error
