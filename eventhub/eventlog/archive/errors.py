"""Errors of the archive; eventhub/eventlog/errors.py has ArchiveDamaged. Plain module."""

from eventhub.base.errors import EventHubError


class ArchiveUnavailable(EventHubError):
    """The archive does not respond or cannot be written; try again shortly. If it persists, check
    EVENTHUB_ARCHIVE_URL.
    """

    status = 503


class ArchiveConflict(EventHubError):
    """The archive has this segment with other content, which happens after a restore of the
    database; archived files are never overwritten.
    """


class SegmentUnreadable(EventHubError):
    """The segment's events do not match its row in `segments`, so it is not archived."""
