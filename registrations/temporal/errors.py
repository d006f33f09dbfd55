"""The errors of texts in the temporal language, part of the error tree of eventhub/base/errors.py.
Plain module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eventhub.base.errors import BadRequest, EventHubError
from registrations.filters.ast import TextPosition
from registrations.filters.errors import FilterSyntax, FilterTooLarge

_TOO_LARGE = {
    "chars_max": "A temporal pattern has at most {:,} characters.",
    "parts_max": "A temporal pattern has at most {:,} words and constants.",
    "depth_max": "Forms are nested at most {} deep.",
    "events_max": "A temporal pattern has at most {} events, with those in `not`; split it.",
    "variables_max": "A temporal pattern has at most {} variables.",
    "arguments_max": "A comparison has at most {} arguments; split it into several tests.",
    "tests_max": "A temporal pattern has at most {} comparisons of two values.",
    "memory_max": "The memory of a temporal pattern has at most the {:,} most recent events.",
}


class TemporalSyntax(BadRequest):
    """The temporal pattern has a syntax error at `line` and `column`, both from 1."""


class TemporalTooLarge(EventHubError):
    """The temporal pattern exceeds a limit, which the message names."""

    status = 422


def temporal_syntax(message: str, position: TextPosition) -> TemporalSyntax:
    """Build the error of a position."""
    return TemporalSyntax(message, line=position.line, column=position.column)


def too_large(position: TextPosition, **bound: int) -> TemporalTooLarge:
    """Build the error of one limit."""
    ((name, most),) = bound.items()
    details: dict[str, Any] = {name: most, "line": position.line, "column": position.column}
    return TemporalTooLarge(_TOO_LARGE[name].format(most), **details)


@contextmanager
def as_temporal() -> Iterator[None]:
    """Raise the errors of forms and filters as those of a temporal pattern."""
    try:
        yield
    except FilterSyntax as error:
        raise TemporalSyntax(error.message, **error.details) from error
    except FilterTooLarge as error:
        bound = {name: most for name, most in error.details.items() if name in _TOO_LARGE}
        message = " ".join(_TOO_LARGE[name].format(most) for name, most in bound.items())
        raise TemporalTooLarge(message or error.message, **error.details) from error
