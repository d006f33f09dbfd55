"""The errors of compound patterns, part of the error tree of eventhub/base/errors.py. Plain
module.
"""

from eventhub.base.errors import EventHubError

_TOO_LARGE = {
    "chars_max": "A pattern has at most {:,} characters; split it into several.",
    "depth_max": "Parts are nested at most {} deep; flatten the pattern, or split it into several.",
    "elements_max": "A pattern has at most {} elements; split it into several.",
    "actions_max": "A pattern has at most {} actions; split it into several.",
    "attributes_max": "A new event has at most {} attributes here; announce several.",
    "within_s_max": "A pattern spans at most {:,} seconds; use a shorter time after `within`.",
    "last_max": "A pattern spans at most {:,} of its events; use a smaller number after `last`.",
}


class PatternTooLarge(EventHubError):
    """The pattern exceeds a limit, which the message names."""

    status = 422

    def __init__(self, *, position: tuple[int, int] | None = None, **bound: int) -> None:
        """Build the error of one limit, with the line and column where it is exceeded, if known."""
        message = " ".join(_TOO_LARGE[name].format(most) for name, most in bound.items())
        where = {} if position is None else {"line": position[0], "column": position[1]}
        super().__init__(message or None, field=None, **bound, **where)
