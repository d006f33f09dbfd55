"""The rows of a sealed segment as Arrow pages, over ADBC. Sql module.

Every page is a short transaction of its own with one snapshot: which partition holds the segment,
and the rows. So a segment may be moved between two pages, and no long snapshot keeps the database
from cleaning up.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from adbc_driver_manager import Error as DriverError
from adbc_driver_postgresql import dbapi
from psycopg.conninfo import make_conninfo

from eventhub import limits
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog import queries
from eventhub.eventlog.archive.errors import SegmentUnreadable
from eventhub.eventlog.archive.ledger import DueSegment

SQL = queries.load("archive.sql", Path(__file__).parent)
_OPTIONS = (
    "-c default_transaction_isolation=repeatable\\ read -c default_transaction_read_only=on"
    f" -c statement_timeout={limits.ARCHIVE_STATEMENT_S_MAX}s"
)


class Rows:
    """A connection of its own for reading segments; one user at a time."""

    def __init__(self, url: str) -> None:
        """Raises DatabaseUnavailable."""
        info = make_conninfo(
            url,
            connect_timeout=limits.CONNECT_TIMEOUT_S,
            application_name="eventhub archive",
            options=_OPTIONS,
        )
        with _explained():
            self._connection = dbapi.connect(info)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def pages(self, segment: DueSegment) -> Iterator[pa.Table]:
        """Tables of (sequence, appended_at, mask as a signed number, payload), without a hole from
        the segment's first sequence to its last.

        Raises SegmentUnreadable for a hole, DatabaseUnavailable.
        """
        after = segment.first - 1
        while after < segment.last:
            page = self._page(segment, after)
            missing = _first_missing(page.column("sequence"), after, segment.last)
            if missing is not None:
                raise SegmentUnreadable(
                    f"Event {missing} of segment {segment.uuid} is not where it should be.",
                    segment=segment.uuid,
                    sequence=missing,
                )
            yield page
            after += page.num_rows

    def _page(self, segment: DueSegment, after: int) -> pa.Table:
        bounds = (limits.ARCHIVE_ROW_GROUP_EVENTS_MAX, limits.ARCHIVE_ROW_GROUP_BYTES_MAX)
        with _explained(), self._connection.cursor() as cursor:
            try:
                cursor.execute(SQL["group_of"], (segment.id,))
                [group] = cursor.fetchone() or (None,)
                if group is None:
                    raise SegmentUnreadable(f"Segment {segment.uuid} has left the database.")
                cursor.execute(SQL["page"], (group, segment.id, after, *bounds))
                return cursor.fetch_arrow_table()
            finally:
                self._connection.rollback()


def _first_missing(sequences: Any, after: int, last: int) -> int | None:
    """The first that is not where it should be; rows are in order, and none is there twice."""
    if not len(sequences):
        return after + 1
    if (sequences[0].as_py(), sequences[-1].as_py()) == (after + 1, after + len(sequences)):
        return last + 1 if after + len(sequences) > last else None
    pairs = enumerate(sequences.to_pylist(), after + 1)
    return next(expected for expected, found in pairs if found != expected)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except DriverError as error:
        raise DatabaseUnavailable(f"The database did not give the rows: {error}") from error
