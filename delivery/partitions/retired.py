"""Reports on retired partitions: those archived, and those dropped without an archive. For
commands. SQL module.
"""

from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from delivery.partitions.retire import SQL
from eventhub.base import limits
from eventhub.postgresql.rows import cursor_of, scalars

Connection = psycopg.Connection[Any]


class RetiredTally(NamedTuple):
    """The retired partitions of one table that had rows, and the number of these rows."""

    table: str
    archived: int
    archived_rows: int
    lost: int  # dropped without being archived
    lost_rows: int
    waiting: int  # out of use, and not archived yet


class Lost(NamedTuple):
    """A partition dropped without being archived. `reason`: `no_archive`, or an error code."""

    name: str
    rows: int
    at: datetime
    reason: str


def tallies(connection: Connection) -> list[RetiredTally]:
    return cursor_of(connection, RetiredTally).execute(SQL["tallies"]).fetchall()


def last_lost(connection: Connection) -> list[Lost]:
    """Return the last partitions dropped without being archived, the newest first."""
    values = (limits.ARCHIVE_FAILURES_SHOWN_MAX,)
    return cursor_of(connection, Lost).execute(SQL["last_lost"], values).fetchall()


def manifests(connection: Connection) -> list[str]:
    """Return the paths of all partitions' manifests in the archive, the oldest first."""
    return scalars(connection).execute(SQL["manifests"]).fetchall()
