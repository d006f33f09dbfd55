"""Errors of the archive beside eventhub/eventlog/errors.py, which has ArchiveDamaged.
Plain module.
"""

from eventhub.base.errors import EventHubError


class ArchiveUnavailable(EventHubError):
    """The archive does not answer or takes nothing; try again shortly, and see EVENTHUB_ARCHIVE_URL
    if it stays.
    """

    code = "archive_unavailable"
    status = 503


class ArchiveConflict(EventHubError):
    """The archive holds this segment with other content, as after the database was restored; what
    is archived is never overwritten.
    """

    code = "archive_conflict"


class SegmentUnreadable(EventHubError):
    """The segment's rows are not what its row of `segments` says, so it is not archived."""

    code = "segment_unreadable"
