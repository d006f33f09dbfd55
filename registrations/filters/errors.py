"""Errors of filters, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import BadRequest, EventHubError

_TOO_LARGE = {
    "chars_max": "A filter has at most {:,} characters, as a text and as the predicate language "
    "shows it; split it into several.",
    "parts_max": "A filter has at most {:,} words and constants, as the predicate language shows "
    "it; split it into several.",
    "depth_max": "Forms stand in each other at most {} deep; write them beside each other, or "
    "split the filter into several.",
    "path_chars_max": "A path has at most {:,} characters; take a shorter name.",
    "alternatives_max": "Taken apart, a filter comes to at most {} alternatives, each without an "
    "`or`; split it into several.",
    "tests_max": "Taken apart into alternatives, each without an `or`, a filter comes to at most "
    "{:,} tests; split it into several.",
    "steps_max": "Taking the filter apart into alternatives, each without an `or`, is too much "
    "work; put fewer of these into one `and`, or split it into several filters.",
}


class FilterSyntax(BadRequest):
    """The filter is not of its language; `line` and `column`, both from 1, say where."""

    code = "filter_syntax"


class UnknownLanguage(BadRequest):
    """There is no such filter language; GET /v1/languages lists them."""

    code = "unknown_language"


class FilterTooLarge(EventHubError):
    """The filter is larger than the hub takes; the message says in what."""

    code = "filter_too_large"
    status = 422

    def __init__(
        self,
        *,
        place: tuple[int, int] | None = None,
        field: str | None = None,
        **bound: int,
    ) -> None:
        """With the one bound that is passed, and the line and column where that is, if known."""
        message = " ".join(_TOO_LARGE[name].format(most) for name, most in bound.items())
        where = {} if place is None else {"line": place[0], "column": place[1]}
        super().__init__(message or None, field=field, **bound, **where)
