"""A stream's versions as a builder reads them, in one snapshot. SQL module."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, named
from registrations import catalog
from registrations.catalog import ChangedVersionQuery, StoredVersion, VersionQuery
from registrations.match_index.epochs.errors import IndexNotTaken
from registrations.match_index.epochs.facts import Moment, takes_index
from registrations.match_index.format.versions import NEVER_ENDS

SQL = queries.load("registrations/sql/index.sql")

Connection = psycopg.Connection[Any]
_ROWS_PER_FETCH = 10_000


class Row(StoredVersion):
    """A version as a builder takes it; it has an endpoint."""

    __slots__ = ()

    def columns(self) -> Mapping[str, int]:
        """What the index has of it beside its filter."""
        return {
            "client": self.client_id,
            "endpoint": self.endpoint_id or 0,
            "group": self.group or 0,
            "registration": self.registration,
            "report": int(self.report is not None),
            "since": self.since,
            "until": NEVER_ENDS if self.until is None else self.until,
        }

    def is_over(self, after: int) -> bool:
        """No event after that sequence is within its bounds."""
        return self.until is not None and self.until <= max(after, self.since)


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """All that is read in the block is of one moment."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(catalog.SQL["raise_work_mem"])
        yield


def moment_of(connection: Connection, stream_id: int) -> Moment:
    """Raises IndexNotTaken if the stream has no use for an index, or is not there."""
    moment = cursor_of(connection, Moment).execute(catalog.SQL["moment"], (stream_id,)).fetchone()
    if moment is None or not takes_index(stream_id, moment):
        raise IndexNotTaken
    return moment


def rows(connection: Connection, wanted: VersionQuery | ChangedVersionQuery) -> Iterator[Row]:
    """A piece at a time, so that the memory does not grow with the versions."""
    is_all = isinstance(wanted, VersionQuery)
    with connection.cursor("index", row_factory=named(Row)) as cursor:
        cursor.itersize = _ROWS_PER_FETCH
        cursor.execute(catalog.SQL["versions" if is_all else "versions_changed"], wanted._asdict())
        yield from cursor


def settle(connection: Connection) -> None:
    """Return when all that a snapshot before saw is on the disk."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute(SQL["settle"])
