"""Errors of database connections, part of the tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import DatabaseUnavailable


class DatabaseBusy(DatabaseUnavailable):
    """The database is there, but too many requests of this process wait for it; nothing was stored.
    Try again after Retry-After seconds.
    """

    code = "database_busy"
