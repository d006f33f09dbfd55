"""Errors of the log, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import EventHubError


class Changed(EventHubError):
    """It has changed since that sequence; look at it again, then send its `current` sequence."""

    code = "changed"
    status = 412


class StorageFull(EventHubError):
    """The disk or the hub's quota is used up; nothing was stored. Try again in a moment."""

    code = "storage_full"
    status = 507


class ArchiveDamaged(EventHubError):
    """An archived segment cannot be read as it was written; `manage.py archive verify` says what is
    wrong.
    """

    code = "archive_damaged"
    status = 500


class TransientUnavailable(EventHubError):
    """Redis, which holds transient streams, cannot be reached; nothing was stored, try again."""

    code = "transient_unavailable"
    status = 503


class DurabilityFixed(EventHubError):
    """A stream's durability is chosen when it is made; make another stream."""

    code = "durability_fixed"
    status = 409
