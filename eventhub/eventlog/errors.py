"""Errors of the log, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import EventHubError


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


class DurabilityFixed(EventHubError):
    """The durability of a stream cannot be changed; create another stream."""

    status = 409
