"""Errors of listening; they belong to the one tree of errors. Plain module."""

from eventhub.base.errors import Conflict, EventHubError, NotFound


class NotAcceptable(EventHubError):
    """This route produces none of the media types in `Accept`; send one of `known`, or none."""

    status = 406


class UnknownSegment(NotFound):
    """The stream has no segment with that UUID; GET /v1/streams/{stream}/segments lists them."""


class InterestExists(Conflict):
    """This socket already has an interest with that name; use another name, or `forget` it."""


class UnknownInterest(NotFound):
    """This socket has no interest with that name."""


class SegmentOpen(Conflict):
    """The segment is still being written; fetch it when it is sealed, or read its events."""
