"""Errors of the log, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import EventHubError


class Changed(EventHubError):
    """The resource has changed since that sequence; read it again, then send its `current`
    sequence.
    """

    code = "changed"
    status = 412


class StorageFull(EventHubError):
    """The disk is full or the hub's quota is used up; nothing was stored. Try again in a moment."""

    code = "storage_full"
    status = 507


class ArchiveDamaged(EventHubError):
    """An archived segment is damaged; run `manage.py archive verify` to find out how."""

    code = "archive_damaged"
    status = 500


class TransientUnavailable(EventHubError):
    """Redis, which stores transient streams, cannot be reached. Nothing was stored; try again."""

    code = "transient_unavailable"
    status = 503


class DurabilityFixed(EventHubError):
    """The durability of a stream cannot be changed; create another stream."""

    code = "durability_fixed"
    status = 409
