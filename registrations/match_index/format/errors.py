"""The errors of the match index, part of the tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import EventHubError


class IndexDamaged(EventHubError):
    """A file of the match index is truncated, altered, or of another version or byte order; build
    the index again.
    """

    code = "match_index_damaged"


class IndexAbsent(EventHubError):
    """There is no match index in the folder; build one first."""

    code = "match_index_absent"


class NotIndexable(EventHubError):
    """A filter has a constant that the match index cannot store; match it in memory."""

    code = "match_index_refused"
    status = 422
