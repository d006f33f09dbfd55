"""The versions of a stream's registrations, read in one snapshot for a build. SQL module."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, named
from registrations import catalog
from registrations.catalog import ChangedVersionQuery, StoredVersion, VersionQuery
from registrations.match_index.epochs.errors import IndexNotUsed
from registrations.match_index.epochs.facts import StreamSnapshot, uses_index
from registrations.match_index.format.versions import NEVER_ENDS, report_bits

SQL = queries.load("registrations/sql/match_index.sql")

Connection = psycopg.Connection[Any]
_ROWS_PER_FETCH = 10_000


class IndexableVersion(StoredVersion):
    """A version with an endpoint, to be indexed."""

    __slots__ = ()

    def columns(self) -> Mapping[str, int]:
        """Return its columns in the index."""
        return {
            "client": self.client_id,
            "endpoint": self.endpoint_id or 0,
            "group": self.group or 0,
            "registration": self.registration,
            "report": report_bits(self.report, self.variable),
            "since": self.since,
            "until": NEVER_ENDS if self.until is None else self.until,
        }

    def is_over(self, after: int) -> bool:
        """Return whether it has no event after that sequence within its bounds."""
        return self.until is not None and self.until <= max(after, self.since)


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Read everything in the block from one snapshot."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(catalog.SQL["raise_work_mem"])
        yield


def snapshot_of(connection: Connection, stream_id: int) -> StreamSnapshot:
    """Read a stream's state. Raises IndexNotUsed if it uses no index, or does not exist."""
    moment = (
        cursor_of(connection, StreamSnapshot)
        .execute(catalog.SQL["moment"], (stream_id,))
        .fetchone()
    )
    if moment is None or not uses_index(stream_id, moment):
        raise IndexNotUsed
    return moment


def rows(
    connection: Connection, query: VersionQuery | ChangedVersionQuery
) -> Iterator[IndexableVersion]:
    """Yield versions, fetched in batches, so that memory does not grow with their number."""
    is_all = isinstance(query, VersionQuery)
    with connection.cursor("index", row_factory=named(IndexableVersion)) as cursor:
        cursor.itersize = _ROWS_PER_FETCH
        cursor.execute(catalog.SQL["versions" if is_all else "versions_changed"], query._asdict())
        yield from cursor


def settle(connection: Connection) -> None:
    """Wait until everything that an earlier snapshot saw is on disk."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute(SQL["settle"])
