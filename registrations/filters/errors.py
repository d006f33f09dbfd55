"""The errors of filters, part of the error tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import BadRequest, EventHubError

_TOO_LARGE = {
    "chars_max": "A filter has at most {:,} characters, as a text and in predicate form; split it "
    "into several.",
    "parts_max": "A filter has at most {:,} words and constants in predicate form; split it into "
    "several.",
    "depth_max": "Forms are nested at most {} deep; flatten the filter, or split it into several.",
    "expressions_max": "A filter has at most {} different expressions that no test of one field "
    "can replace; join those that belong together, or split the filter into several.",
    "path_chars_max": "A path has at most {:,} characters; use a shorter name.",
    "alternatives_max": "A filter expands to at most {} alternatives without `or`; split it into "
    "several.",
    "tests_max": "The alternatives of a filter (without `or`) have at most {:,} tests in all; "
    "split it into several.",
    "steps_max": "Expanding the filter into alternatives without `or` takes too much work; put "
    "fewer `or` into one `and`, or split it into several filters.",
}


class FilterSyntax(BadRequest):
    """The filter has a syntax error at `line` and `column`, both from 1."""


class UnknownLanguage(BadRequest):
    """The filter language does not exist; GET /v1/languages lists the languages."""


class FilterTooLarge(EventHubError):
    """The filter exceeds a limit, which the message names."""

    status = 422

    def __init__(
        self,
        *,
        position: tuple[int, int] | None = None,
        field: str | None = None,
        **bound: int,
    ) -> None:
        """Build the error of one limit, with the line and column where it is exceeded, if known."""
        message = " ".join(_TOO_LARGE[name].format(most) for name, most in bound.items())
        where = {} if position is None else {"line": position[0], "column": position[1]}
        super().__init__(message or None, field=field, **bound, **where)
