"""Errors of the log and its archive, part of the tree of eventhub/base/errors.py. Plain module."""

from typing import Any

from eventhub.base.errors import Conflict, EventHubError
from eventhub.event.json_codec import time_text


class Changed(EventHubError):
    """The resource has changed since that sequence; read it again, then send its `current`
    sequence.
    """

    status = 412


class StorageFull(EventHubError):
    """The disk is full or the hub's quota is used up; nothing was stored. Try again in a moment."""

    status = 507


class ArchiveDamaged(EventHubError):
    """An archived segment is damaged; run `manage.py archive verify` to find out how."""

    status = 500


class TransientUnavailable(EventHubError):
    """Redis, which stores transient streams, cannot be reached. Nothing was stored; try again."""

    status = 503


class StreamDeleting(Conflict):
    """The stream is to be deleted at `deletes_at`: it can be read, but takes no events, policies
    and registrations. POST /v1/streams/{stream}/restore withdraws the deletion until then, or POST
    /v1/zones/{name}/restore that of its zone.
    """

    @classmethod
    def of(cls, stream: str, deletes_at_us: int, **position: Any) -> "StreamDeleting":
        """Return the error about one stream, with the end of its grace period."""
        return cls(stream=stream, deletes_at=time_text(deletes_at_us), **position)


class ZoneDeleting(Conflict):
    """The zone is to be deleted at `deletes_at`, so it gets nothing new. An operator withdraws the
    deletion until then with POST /v1/zones/{name}/restore.
    """


class NotDeleting(Conflict):
    """No deletion is scheduled, or its grace period has ended."""


class OnHold(Conflict):
    """A stream is under a legal hold, so neither it nor its zone can be deleted; set `hold` to null
    first.
    """


class StreamDeleted(EventHubError):
    """The stream was deleted while it was read. A new stream of its name has other segments."""

    status = 410


class DurabilityFixed(EventHubError):
    """The durability of a stream cannot be changed; create another stream."""

    status = 409


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
