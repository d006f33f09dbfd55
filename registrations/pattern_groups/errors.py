"""Errors of pattern groups, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base import limits
from eventhub.base.errors import Conflict, EventHubError, NotFound, Unavailable


class UnknownPatternGroup(NotFound):
    """This client has no such pattern group; list them with GET /v1/pattern-groups, or create it
    first.
    """


class UnknownPattern(NotFound):
    """This client has no such pattern, or it was deleted; list them with GET /v1/patterns."""


class PatternGroupExists(Conflict):
    """The client has a pattern group with this name; use it, or choose another name."""


class PatternExists(Conflict):
    """The group has a pattern with this name; change that pattern, or choose another name."""


class PatternsTooCostly(Conflict):
    """The patterns of the group together would need more evaluations for every event than the
    limit. Add an attribute's value, prefix or range to each filter, remove other patterns, or use
    another group.
    """

    def __init__(self, *, cost: int, used: int) -> None:
        """Initialize with the cost of this pattern and of the others of its group."""
        message = f"{' '.join((type(self).__doc__ or '').split())} This one costs {cost:,}, the"
        message += f" others {used:,} of {limits.FILTERS_TRIED_MAX:,}."
        most = limits.FILTERS_TRIED_MAX
        super().__init__(message, field="text", cost=cost, used=used, cost_max=most)


class TooManyPatterns(EventHubError):
    """The request has more patterns than the hub accepts at once; split it."""

    status = 413


class StateUnavailable(Unavailable):
    """The partial matches cannot be computed now, because the group has consumed too much since its
    last snapshot; try again after the seconds in Retry-After.
    """
