"""Errors of a stream's match index, part of the one tree of eventhub/errors.py. Plain."""

from eventhub.errors import EventHubError


class IndexNotTaken(EventHubError):
    """The stream is not matched from an index: the registrations on `system` are matched in memory,
    nothing of a transient stream is called back, and other strategies than `auto` and `index` have
    none.
    """

    code = "match_index_not_taken"
    status = 422


class IndexOutdated(EventHubError):
    """A newer index of the stream was published while this one was being built; that one stays."""

    code = "match_index_outdated"
    status = 409
