"""Errors of the listen doors, as part of the one tree. Plain module."""

from eventhub.base.errors import Conflict, EventHubError, NotFound


class NotAcceptable(EventHubError):
    """None of the media types in `Accept` is one of this door's; see `known`, or send none."""

    code = "not_acceptable"
    status = 406


class UnknownSegment(NotFound):
    """The stream has no segment with that UUID; GET /v1/streams/{stream}/segments lists them."""

    code = "unknown_segment"


class InterestExists(Conflict):
    """This socket asks for interest under that name already; choose another one, or `forget` it."""

    code = "interest_exists"


class UnknownInterest(NotFound):
    """This socket asks for no interest under that name."""

    code = "unknown_interest"


class SegmentOpen(Conflict):
    """The segment is still being written; take it when it is sealed, or read its events."""

    code = "segment_open"
