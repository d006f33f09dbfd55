"""Errors of database connections, in the tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import DatabaseUnavailable


class DatabaseBusy(DatabaseUnavailable):
    """Too many requests of this process wait for the database; nothing was stored. Try again after
    Retry-After seconds.
    """
